"""Telling contacts: what is signed, what the webhook's answer means, and what a file of contacts may say."""

import hashlib
import hmac
import json
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from tests.support.console_facts import ID

from packhorse.console.telling.app import deliver
from packhorse.console.telling.contacts import Contacts, Webhook, contacts_of
from packhorse.console.telling.http import WebhookAway
from packhorse.console.telling.signing import body_of, headers_of
from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import SettingsError
from packhorse.processor import Quarantine, Retry, Skip
from packhorse.processor.noticing.messages import NeedsPerson

NOON = datetime(2026, 8, 1, 12, tzinfo=UTC)
SECRET = b"0123456789abcdef"
NOTICE = NeedsPerson(
    print="0" * 32,
    group="figures",
    topic="airline.aircraft",
    message_type=None,
    reason="crashed",
    site="ValueError at a.py:1",
    count=3,
    first_at=NOON,
    last_at=NOON,
    contact="oncall",
)
CONTACTS = Contacts(webhooks={"oncall": Webhook(url="https://hooks.example.org", secret=SECRET)})


def test_the_signature_can_be_verified_with_what_was_sent() -> None:
    body = body_of(NOTICE, ID)
    headers = headers_of(body, secret=SECRET, at=17, message_id=ID)
    expected = hmac.new(SECRET, b"17." + body, hashlib.sha256).hexdigest()
    assert headers["Packhorse-Signature"] == f"t=17,v1={expected}"
    assert headers["Packhorse-Id"] == str(ID)
    assert json.loads(body)["first_at"] == "2026-08-01T12:00:00Z"


@pytest.mark.parametrize(
    ("answer", "raised"),
    [
        (200, None),
        (204, None),
        (301, Quarantine),
        (302, Quarantine),
        (400, Quarantine),
        (401, Quarantine),
        (429, Retry),
        (500, Retry),
        (503, Retry),
        (WebhookAway("x: TimeoutError"), Retry),
    ],
)
def test_what_an_answer_means(answer: object, raised: type[Exception] | None) -> None:
    def posts(*given: Any, **more: Any) -> int:
        del given, more
        if isinstance(answer, Exception):
            raise answer
        assert isinstance(answer, int)
        return answer

    if raised is None:
        deliver(NOTICE, ID, CONTACTS, posts=posts, clock=SYSTEM_CLOCK)
    else:
        with pytest.raises(raised):
            deliver(NOTICE, ID, CONTACTS, posts=posts, clock=SYSTEM_CLOCK)


def test_a_contact_without_a_webhook_is_skipped_and_a_default_takes_all() -> None:
    sent: list[str] = []

    def posts(url: str, *given: Any, **more: Any) -> int:
        del given, more
        sent.append(url)
        return 200

    with pytest.raises(Skip, match="oncall"):
        deliver(NOTICE, ID, Contacts(webhooks={}), posts=posts, clock=SYSTEM_CLOCK)
    fallback = Contacts(webhooks={"default": Webhook(url="https://default", secret=SECRET)})
    deliver(NOTICE, ID, fallback, posts=posts, clock=SYSTEM_CLOCK)
    assert sent == ["https://default"]


@pytest.mark.case("X-08")
@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("x", "contacts.toml"),
        ('[a]\nurl = "https://x"', "needs url and secret_file"),
        ('[a]\nurl = "https://x"\nsecret = "0123456789abcdef"', "and nothing else"),
        ('[a]\nurl = "http://x"\nsecret_file = "{secret}"', "must be https://"),
        ('[a]\nurl = "https://u:p@x"\nsecret_file = "{secret}"', "no user or password"),
        ('[a]\nurl = "https://x\\r\\nHost: y"\nsecret_file = "{secret}"', "must be https://"),
        ('[a]\nurl = "https://x"\nsecret_file = "{short}"', "at least 16"),
        ('[a]\nurl = "https://x"\nsecret_file = "{secret}.gone"', "secret_file"),
        ('[a]\nurl = "https://x"\nsecret_file = "{secret}"\ntimeout = 0', "timeout 0"),
    ],
)
def test_a_file_that_is_wrong_names_what_is_and_no_secret(tmp_path: Path, text: str, said: str) -> None:
    """Fails when a secret is taken from the file itself, is weak, or stands in an error."""
    secret, short, file = tmp_path / "secret", tmp_path / "short", tmp_path / "contacts.toml"
    secret.write_bytes(SECRET)
    short.write_bytes(b"short")
    file.write_text(text.replace("{secret}", str(secret)).replace("{short}", str(short)))
    with pytest.raises(SettingsError) as found:
        contacts_of(file)
    assert said in str(found.value)
    assert SECRET.decode() not in str(found.value)


def test_contacts_are_read_and_no_secret_is_in_their_repr(tmp_path: Path) -> None:
    secret, file = tmp_path / "secret", tmp_path / "contacts.toml"
    secret.write_bytes(SECRET + b"\n")
    file.write_text(f'[oncall]\nurl = "http://127.0.0.1:1/x"\nsecret_file = "{secret}"\ntimeout = 2\n')
    found = contacts_of(file).of("oncall")
    assert found is not None
    assert (found.secret, found.timeout) == (SECRET, 2.0)
    assert SECRET.decode() not in repr(found)

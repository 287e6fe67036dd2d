"""
The application that tells contacts: `packhorse processor run packhorse.console.telling.app:app`.

It is a group like any other: a notice that a webhook did not take waits in tiers, then in quarantine, for a person.
"""

from collections.abc import Callable, Mapping
from uuid import UUID

from packhorse.console.settings import DoctorSettings
from packhorse.console.telling.contacts import Contacts, contacts_of
from packhorse.console.telling.http import WebhookAway, post
from packhorse.console.telling.signing import body_of, headers_of
from packhorse.core.clock import SYSTEM_CLOCK, Clock
from packhorse.core.errors import SettingsError
from packhorse.processor import Context, Processor, Quarantine, Retry, Skip
from packhorse.processor.noticing.messages import NeedsPerson
from packhorse.processor.noticing.notices import notice_class

GROUP = "packhorse-notices"
POLICY = Retry(delays=("5s", "1m", "10m"), attempts=20, budget="1d")
"""A receiver may be away for hours; after a day the notice is old, and the next one is due."""
Posts = Callable[..., int]


def app_for(
    contacts: Contacts, namespace: str, *, posts: Posts = post, clock: Clock = SYSTEM_CLOCK
) -> Processor:
    """Return the processor that posts the notices of *namespace* to the webhooks of *contacts*."""
    made = Processor(GROUP, ordering="none")

    @made.handler(notice_class(namespace), retry=POLICY, isolation="message")
    def tell(notice: NeedsPerson, ctx: Context) -> None:
        deliver(notice, ctx.id, contacts, posts=posts, clock=clock)

    return made


def deliver(notice: NeedsPerson, message_id: UUID, contacts: Contacts, *, posts: Posts, clock: Clock) -> None:
    """
    Post *notice* to its contact's webhook; a repetition has the same Packhorse-Id.

    Raises:
        Skip: There is no webhook for the contact.
        Retry: The webhook is away, or asks to be asked later (429, 5xx).
        Quarantine: It refuses, or sends elsewhere, which is not followed.
    """
    webhook = contacts.of(notice.contact)
    if webhook is None:
        raise Skip(f"contact {notice.contact or '(none)'} has no webhook, and there is no default")
    body = body_of(notice, message_id)
    at = int(clock.now().timestamp())
    headers: Mapping[str, str] = headers_of(body, secret=webhook.secret, at=at, message_id=message_id)
    try:
        status = posts(webhook.url, body, headers, timeout=webhook.timeout)
    except WebhookAway as error:
        raise Retry(f"the webhook of {notice.contact or 'default'} is away: {error}") from error
    if 200 <= status < 300:
        return
    if status == 429 or status >= 500:
        raise Retry(f"the webhook of {notice.contact or 'default'} answers {status}")
    raise Quarantine("webhook-refused", f"the webhook of {notice.contact or 'default'} answers {status}")


def _composed() -> Processor:
    settings = DoctorSettings.load()
    if settings.contacts is None:
        raise SettingsError(
            "PACKHORSE_CONSOLE_CONTACTS is not set: a file in TOML with [contact], url and secret_file; see "
            "docs/how-to/tell-contacts.md"
        )
    if settings.namespace is None:
        raise SettingsError("PACKHORSE_NAMESPACE is not set: the topic of notices begins with it")
    return app_for(contacts_of(settings.contacts), settings.namespace)


def __getattr__(name: str) -> Processor:
    """Make `app` from the settings when it is asked for, and not when the module is looked at."""
    if name != "app":
        raise AttributeError(name)
    globals()["app"] = _composed()
    found: Processor = globals()["app"]
    return found

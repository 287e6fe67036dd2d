"""Acts on messages in quarantine as pages offer them: what a form carries comes back as it was."""

from datetime import datetime
from typing import Any

import pytest
from tests.support.console_facts import ID, NOON, inbox_row, quarantined

from packhorse.console.facts import Outcome
from packhorse.console.pages.deciding import hidden_of, offer_of
from packhorse.console.pages.editing import editable, edited_from, visible
from packhorse.console.pages.showing import shown
from packhorse.console.quarantine.redrive import DISCARD, REDRIVE, Order, previewed
from packhorse.core.errors import UsageError


@pytest.mark.parametrize("act", [REDRIVE, DISCARD])
def test_what_an_offer_hides_in_its_form_is_the_order_to_the_microsecond(act: str) -> None:
    """Fails when the act that a form sends is not exactly the one that was previewed."""
    message = quarantined(quarantined_at=NOON.replace(microsecond=123_456), redrives=2)
    preview = previewed(message, inbox_row(outcome=Outcome.QUARANTINE, attempt=6), None, act=act)
    offer = offer_of(preview, may=True)
    back = {name: str(shown(value)) for name, value in offer.hidden.items()}
    order = Order(
        id=ID,
        group=message.group,
        topic=message.topic,
        attempt=int(back["attempt"]),
        redrives=int(back["redrives"]),
        quarantined_at=datetime.fromisoformat(back["quarantined_at"]),
    )
    assert order == preview.order
    assert hidden_of(order) == offer.hidden
    assert offer.is_danger is (act == DISCARD)
    assert all(text.endswith(".") for text in (*offer.happens, *offer.warnings))


@pytest.mark.parametrize(
    "value",
    [
        {"a": "x\u202ey\x1b\x85\u2028\U000e0001"},
        {"a": "Käse 北京 😀"},
        {"a": [1, 2.5, None, True, {"b": "\\u0041"}]},
        {},
    ],
)
def test_a_payload_that_a_page_shows_comes_back_the_same(value: dict[str, Any]) -> None:
    """Fails when showing a payload changes it: the copy would differ in a field that nobody touched."""
    text = editable(value)
    assert shown(text) == text
    assert edited_from(text) == value
    assert edited_from(visible(text.replace("\n", "\r\n"))) == value


@pytest.mark.parametrize(
    "text",
    [
        "",
        "[1]",
        "7",
        '{"a": 1',
        '{"a": 1, "a": 2}',
        '{"a": NaN}',
        '{"a": Infinity}',
        '{"secret": "xyz',
        "[" * 100_000,
    ],
)
def test_what_is_no_payload_is_refused_without_repeating_it(text: str) -> None:
    """Fails when rubbish in the form is an error of the console, or a word of it stands in what is said."""
    with pytest.raises(UsageError) as refused:
        edited_from(text)
    assert "xyz" not in str(refused.value)

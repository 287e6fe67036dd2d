"""One answer from facts: what is known, what is not, and in which words."""

from uuid import UUID

import pytest
from tests.support.console_facts import NOON, act, facts, hold, inbox_row, outbox_row, quarantined

from packhorse.console.facts import (
    Discard,
    Facts,
    Forgotten,
    Hold,
    InboxRow,
    Outcome,
    Place,
    QuarantinedMessage,
    State,
)
from packhorse.console.truth.groups import Redrive, redrive_of
from packhorse.console.truth.status import (
    NOT_ASKED,
    NOT_NEEDED,
    Published,
    Search,
    status_of,
)

PLACE = Place(topic="airline.aircraft", partition=1, offset=5)


@pytest.mark.case("X-01")
def test_an_id_that_nothing_knows_is_unknown_and_not_pending() -> None:
    """Fails when a missing outbox row is taken for "not yet published"."""
    status = status_of(facts(), NOT_ASKED)
    assert not status.known
    assert status.standing.startswith("unknown:")
    assert status.published is Published.UNKNOWN


def test_an_id_from_before_what_the_inbox_keeps_is_not_called_unknown() -> None:
    gone = (Forgotten(group="figures", kept_from=NOON, days=22),)
    status = status_of(facts(forgotten=gone), NOT_ASKED)
    assert not status.known
    assert status.standing == (
        "older than the inbox keeps: no row; group figures keeps rows for 22 days, and may have dealt with it"
    )
    published = status_of(facts(recorded=outbox_row(published=True), forgotten=gone), NOT_ASKED)
    assert published.standing.startswith("published; group figures")
    answered = status_of(facts(inbox=(inbox_row(),), forgotten=gone), NOT_ASKED)
    assert "keeps rows" not in answered.standing


@pytest.mark.case("X-01")
def test_a_recorded_message_that_waits_is_known_and_not_yet_published() -> None:
    """Fails when a row that the horizon is not past counts as unknown or as published."""
    status = status_of(facts(recorded=outbox_row()), NOT_ASKED)
    assert status.known
    assert (status.standing, status.published) == ("recorded, not yet published", Published.NOT_YET)


@pytest.mark.parametrize(
    ("known", "search", "published", "why"),
    [
        (facts(recorded=outbox_row(published=True)), NOT_ASKED, Published.YES, "horizon is past it"),
        (facts(recorded=outbox_row(published=None)), NOT_ASKED, Published.UNKNOWN, "no row of a relay"),
        (facts(recorded=outbox_row(relay_ran=False)), NOT_ASKED, Published.NOT_YET, "no relay has run"),
        (
            facts(recorded=outbox_row()),
            Search(place=PLACE, said="found"),
            Published.YES,
            "airline.aircraft/1/5",
        ),
        (facts(inbox=(inbox_row(),)), NOT_NEEDED, Published.YES, "airline.aircraft/2/1234"),
        (facts(quarantined=(quarantined(),)), NOT_NEEDED, Published.YES, "airline.aircraft/2/1234"),
        (facts(acts=(act(),)), NOT_NEEDED, Published.UNKNOWN, "did not record it"),
    ],
)
def test_published_says_what_it_rests_on(
    known: Facts, search: Search, published: Published, why: str
) -> None:
    status = status_of(known, search)
    assert status.known
    assert status.published is published
    assert why in status.published_why


@pytest.mark.case("X-01")
def test_a_row_that_the_relay_has_passed_by_is_held_and_not_published() -> None:
    """Fails when the horizon alone is asked: it is past rows that are held."""
    status = status_of(facts(recorded=outbox_row(published=True), holds=(hold(),)), NOT_ASKED)
    assert (status.published, status.standing) == (Published.NOT_YET, "held by the relay, hold 12: too_large")
    assert status.hold is not None
    assert status.hold.next == "packhorse relay hold show 12"


def test_a_row_that_somebody_gave_up_is_never_published() -> None:
    gone = Discard(hold=12, actor="ann (role ops)", why="a test", at=NOON)
    status = status_of(facts(recorded=outbox_row(published=True), discard=gone), NOT_ASKED)
    assert (status.published, status.standing) == (Published.NEVER, "discarded before it was published")
    assert status.published_why == "ann (role ops) gave it up"


@pytest.mark.parametrize(
    ("holds", "found"),
    [
        ([hold(id=1, scope="topic"), hold(id=2)], 2),
        ([hold(id=1, scope="topic"), hold(id=2, scope="partition", partition=0, partitions=1)], 2),
        ([hold(id=1, scope="topic"), hold(id=2, scope="partition", partition=7, partitions=1)], 1),
        ([], None),
    ],
)
def test_a_row_waits_in_the_narrowest_hold_that_fits(holds: list[Hold], found: int | None) -> None:
    status = status_of(facts(recorded=outbox_row(published=True), holds=tuple(holds)), NOT_ASKED)
    assert (status.hold and status.hold.id) == found


@pytest.mark.parametrize(
    ("change", "next_"),
    [
        ({"state": "releasing"}, "on their way"),
        ({"asked": True}, "is ordered"),
        ({"heals": True}, "by itself"),
    ],
)
def test_a_hold_says_what_comes_next(change: dict[str, object], next_: str) -> None:
    assert next_ in hold(**change).next


@pytest.mark.parametrize(
    ("inbox", "held", "standing"),
    [
        (inbox_row(), None, "done"),
        (inbox_row(outcome=Outcome.SKIPPED), None, "skipped"),
        (inbox_row(outcome=Outcome.RETRY, attempt=3, due_at=NOON), None, "retry: attempt 3 is next, see due"),
        (inbox_row(outcome=Outcome.QUARANTINE, reason="permanent"), quarantined(), "quarantine: permanent"),
        (None, quarantined(), "quarantine"),
        (
            inbox_row(outcome=Outcome.RETRY),
            quarantined(state=State.REDRIVEN, redrives=1),
            "redrive asked: a running processor of the group sends it",
        ),
        (
            inbox_row(outcome=Outcome.RETRY),
            quarantined(state=State.REDRIVEN, redrives=1, redrive_sent_at=NOON),
            "redrive sent: no outcome yet",
        ),
        (
            inbox_row(),
            quarantined(state=State.REDRIVEN, redrives=1, redrive_sent_at=NOON),
            "done, after a redrive",
        ),
        (inbox_row(outcome=Outcome.PARKED, behind=UUID(int=7)), None, f"parked: waits behind {UUID(int=7)}"),
        (inbox_row(outcome=Outcome.PARKED), None, "parked"),
        (
            inbox_row(outcome=Outcome.QUARANTINE, reason="permanent"),
            quarantined(redrives=1),
            "quarantine again, after a redrive: permanent",
        ),
    ],
)
def test_a_group_stands_where_its_rows_say(
    inbox: InboxRow | None, held: QuarantinedMessage | None, standing: str
) -> None:
    known = facts(inbox=() if inbox is None else (inbox,), quarantined=() if held is None else (held,))
    status = status_of(known, NOT_NEEDED)
    assert [group.standing for group in status.groups] == [standing]
    assert status.standing == f"figures: {standing}"


@pytest.mark.case("O-07")
@pytest.mark.parametrize(
    ("held", "inbox", "step"),
    [
        (quarantined(), inbox_row(outcome=Outcome.QUARANTINE), Redrive.NONE),
        (quarantined(state=State.REDRIVEN, redrives=1), inbox_row(outcome=Outcome.RETRY), Redrive.ASKED),
        (
            quarantined(state=State.REDRIVEN, redrives=1, redrive_sent_at=NOON),
            inbox_row(outcome=Outcome.RETRY),
            Redrive.SENT,
        ),
        (
            quarantined(state=State.REDRIVEN, redrives=1, redrive_sent_at=NOON),
            inbox_row(outcome=Outcome.SKIPPED),
            Redrive.PROVED,
        ),
        (quarantined(redrives=1), inbox_row(outcome=Outcome.QUARANTINE), Redrive.PROVED),
    ],
)
def test_asked_sent_and_proved_are_three_things(
    held: QuarantinedMessage, inbox: InboxRow, step: Redrive
) -> None:
    """Fails when an order, or a copy on its way, is shown as a result."""
    assert redrive_of(held, inbox) is step


def test_a_redriven_message_that_failed_and_goes_again_was_sent() -> None:
    known = facts(
        inbox=(inbox_row(outcome=Outcome.RETRY, attempt=7, due_at=NOON),),
        quarantined=(quarantined(state=State.REDRIVEN, redrives=1),),
        acts=(act(detail={"attempt": 6}),),
    )
    (group,) = status_of(known, NOT_NEEDED).groups
    assert (group.redrive, group.standing) == (Redrive.SENT, "redriven and failed: attempt 7 is next")


def test_every_group_is_told_apart() -> None:
    known = facts(inbox=(inbox_row(), inbox_row(group="billing", outcome=Outcome.RETRY)))
    status = status_of(known, NOT_NEEDED)
    assert [(group.group, group.standing) for group in status.groups] == [
        ("billing", "retry: attempt 1 is next"),
        ("figures", "done"),
    ]

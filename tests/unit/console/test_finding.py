"""What is typed into the search: read for all that it may mean, and never a reason to fall over."""

from uuid import UUID

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.support.console_facts import NOON, quarantined
from tests.support.explained import KEYS, MESSAGES, explained

from packhorse.console.facts import Place
from packhorse.console.finding.model import AtPlace, Found, Row
from packhorse.console.pages.finding import LONGEST, hits, looked, not_looked, sought
from packhorse.console.pages.leads import lead_of
from packhorse.core.rights import Right

ID = "019b76da-a800-7000-8000-000000000000"
BARE = ID.replace("-", "")


@given(st.text(max_size=1_200))
@example("\ud800")
@example("a\x00b")
@example("x" * 1_001)
@example("0x")
@example("redr\u0131ve 7")
@example("9" * 40)
@example(ID * 40)
def test_whatever_is_typed_is_read(text: str) -> None:
    """Fails when any text is an error, a key that can't be asked for is handed on, or a number that no table holds is."""
    found = sought(text)
    assert found.text == text.strip()[:LONGEST]
    if found.wrong is not None:
        assert (found.id, found.ids, found.runs, found.place, found.key) == (None, (), (), None, None)
        return
    assert len(found.ids) <= 5
    assert all(kind in {"redrive", "replay"} and 0 < number < 2**63 for kind, number in found.runs)
    assert found.place is None or (found.place.partition < 2**31 and found.place.offset < 2**63)
    assert (found.key is None) is (found.text == "" or found.id is not None)
    assert found.print is None or 8 <= len(found.print) <= 32


@given(st.uuids(), st.sampled_from(["{}", " {}\n", "urn:uuid:{}", "{{{}}}", '"{}"', "<{}>"]))
def test_an_id_is_an_id_however_it_is_written(message_id: UUID, form: str) -> None:
    for text in (str(message_id), str(message_id).upper()):
        assert sought(form.format(text)).id == message_id


@pytest.mark.parametrize(
    "text",
    [f"message {ID} failed", f"id={ID}, attempt 3", f"/messages/{ID}?search=true", f"{ID} {ID}"],
)
def test_an_id_in_a_line_is_offered_and_the_line_may_be_a_key_all_the_same(text: str) -> None:
    """Fails when a pasted line of a log finds nothing, or a key that holds an id can't be found."""
    found = sought(text)
    assert (found.id, found.ids, found.key) == (None, (UUID(ID),), text.encode())


@pytest.mark.parametrize("text", [ID[:-1], f"{ID}0", f"a{ID}", f"{ID}-1"])
def test_what_only_looks_like_an_id_is_none(text: str) -> None:
    assert (sought(text).id, sought(text).ids) == (None, ())


def test_hexadecimal_digits_may_be_an_id_a_key_s_hash_a_print_or_a_key() -> None:
    found = sought(BARE.upper())
    assert (found.ids, found.key_hash, found.print, found.key) == (
        (UUID(ID),),
        BARE,
        BARE,
        BARE.upper().encode(),
    )
    short = sought("3f9a1c02")
    assert (short.ids, short.key_hash, short.print) == ((), None, "3f9a1c02")
    assert sought("3f9a1c0").print is None


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("airline.aircraft/2/1234", ("airline.aircraft", 2, 1234)),
        ("airline.aircraft[2]@1234", ("airline.aircraft", 2, 1234)),
        ("airline.aircraft[2] 1234", ("airline.aircraft", 2, 1234)),
        ("a/0/0", ("a", 0, 0)),
    ],
)
def test_a_place_is_read_as_logs_and_pages_write_it(text: str, place: tuple[str, int, int]) -> None:
    topic, partition, offset = place
    assert sought(text).place == Place(topic=topic, partition=partition, offset=offset)


@pytest.mark.parametrize(
    "text", ["a/b/c", "a/1", "a b/1/2", "a/1/2/3", "a/99999999999/1", f"{'a' * 250}/1/1"]
)
def test_what_is_no_place_is_none(text: str) -> None:
    assert sought(text).place is None


def test_runs_are_named_by_kind_and_number_or_by_number_alone() -> None:
    assert sought("redrive 7").runs == (("redrive", 7),)
    assert sought("Replays/3").runs == (("replay", 3),)
    assert sought("#7").runs == (("redrive", 7), ("replay", 7))
    assert (sought("redrive 0").runs, sought("redrive").runs, sought("7.5").runs) == ((), (), ())


def test_a_key_that_is_no_text_is_typed_as_pages_show_it() -> None:
    assert sought("0xff00").key == b"\xff\x00"
    assert sought("0xf").key == b"0xf"
    assert sought(" N 1 ").key == b"N 1"


def test_what_was_looked_through_is_said_and_what_was_not_too() -> None:
    """Fails when "nothing found" may be read as "it does not exist"."""
    wanted = sought("N14228")
    found = Found(now=NOON, looked=10_000, back_to=NOON)
    assert "the newest 10000 outbox rows, back to 2026-08-01 12:00:00 UTC" in looked(wanted, found)
    assert "the outbox, which is empty" in looked(wanted, Found(now=NOON))
    assert not any("outbox" in text for text in looked(sought("0xff"), Found(now=NOON)))
    assert any("older outbox rows" in text for text in not_looked(wanted))


def test_hits_count_all_that_is_shown() -> None:
    row = Row(id=UUID(ID), type="t", aggregatetype="a", created_at=NOON)
    found = Found(now=NOON, quarantined=(quarantined(),), rows=(row,), groups=("figures",))
    place = AtPlace(id=UUID(ID), said="found")
    assert hits(sought("x"), found, runs=[("redrive", 7, "ended")], place=place) == 5
    assert hits(sought("x"), Found(now=NOON), place=AtPlace(id=None, said="no")) == 0


PROPOSED = sorted(
    {
        action.command
        for name in [*MESSAGES, *KEYS]
        for part in explained(name).parts
        for action in part.can
        if action.command is not None
    }
)
NO_PAGE = ("packhorse processor run", "packhorse relay run")


@pytest.mark.parametrize("command", PROPOSED)
def test_each_command_that_is_proposed_is_found_on_a_page_or_is_known_to_be_on_none(command: str) -> None:
    """Fails when an explanation proposes a command that these pages could do, and no button leads there."""
    lead = lead_of(command)
    elsewhere = command.startswith(NO_PAGE) or "--database-url" in command
    assert (lead is None) is elsewhere
    acts = ("quarantine redrive", "quarantine discard", "quarantine restore", "quarantine edit", "--key-hash")
    if lead is not None:
        is_act = any(act in command for act in acts)
        assert (lead.right is not None) is is_act


@pytest.mark.parametrize(
    ("command", "href"),
    [
        (
            f"packhorse quarantine discard {ID} --group 'a b' --topic a.b --why TEXT",
            f"/quarantine/{ID}/discard?group=a+b&topic=a.b",
        ),
        (f"packhorse status {ID} --search", f"/messages/{ID}?search=true"),
        (
            "packhorse processor resume --group g --topic a.b --key-hash 0a --why TEXT",
            "/keys/resume?group=g&topic=a.b&key_hash=0a",
        ),
        ("packhorse processor resume --group g/x --why TEXT", "/groups/g%2Fx"),
        ("packhorse replay resume 4", "/replays/4"),
        (f"packhorse job cancel {ID} --why TEXT", f"/jobs/{ID}"),
        ("packhorse relay hold show 12", "/relay/holds/12"),
        ("packhorse quarantine redrive '../..' --group g", "/quarantine/..%2F../redrive?group=g"),
    ],
)
def test_a_command_leads_to_its_page(command: str, href: str) -> None:
    lead = lead_of(command)
    assert lead is not None
    assert lead.href == href


def test_what_is_no_command_of_ours_leads_nowhere() -> None:
    for text in (None, "", "rm -rf /", "packhorse 'quarantine", "packhorse quarantine purge x", "packhorse"):
        assert lead_of(text) is None
    danger = lead_of(f"packhorse quarantine discard {ID}")
    assert danger is not None
    assert (danger.is_danger, danger.right) == (True, Right.ACT)

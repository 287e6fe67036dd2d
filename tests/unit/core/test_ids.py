"""Ids: their layout, their time, and that the same cause gives the same id."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.core.ids import derived_id, foreign_id, id_of, time_of, uuid7_from

MOMENTS = st.integers(0, 253_402_000_000).map(lambda s: datetime.fromtimestamp(s, UTC))
ENTROPY = st.binary(min_size=10, max_size=10)
IDS = st.uuids()


@given(MOMENTS, ENTROPY)
def test_a_uuid7_carries_its_time(at: datetime, entropy: bytes) -> None:
    made = uuid7_from(at, entropy)

    read = time_of(made)

    assert made.version == 7
    assert made.variant == "specified in RFC 4122"
    assert read == at


@given(MOMENTS, ENTROPY, ENTROPY)
def test_ids_sort_by_their_time(at: datetime, one: bytes, other: bytes) -> None:
    assert uuid7_from(at, one) < uuid7_from(at + timedelta(milliseconds=1), other)


@pytest.mark.parametrize("entropy", [b"", bytes(9), bytes(11)])
def test_entropy_of_another_length_is_refused(entropy: bytes) -> None:
    with pytest.raises(ValueError, match="10 are needed"):
        uuid7_from(datetime(2026, 1, 1, tzinfo=UTC), entropy)


def test_a_time_before_1970_is_refused() -> None:
    with pytest.raises(ValueError, match="1969"):
        uuid7_from(datetime(1969, 12, 31, tzinfo=UTC), bytes(10))


def test_other_ids_have_no_time() -> None:
    assert time_of(UUID("f47ac10b-58cc-4372-a567-0e02b2c3d479")) is None


@pytest.mark.case("P-35")
@given(IDS, st.text(max_size=40), st.integers(0, 1000))
def test_a_follow_up_that_is_made_again_has_the_same_id(consumed: UUID, group: str, ordinal: int) -> None:
    """Fails when the id takes in anything but the consumed id, the group and the ordinal (time, chance, attempt)."""
    made = derived_id(consumed, group, ordinal)

    assert made == derived_id(consumed, group, ordinal)
    assert made.version == 7
    assert made.int >> 80 == consumed.int >> 80


def test_follow_ups_of_other_messages_groups_and_calls_differ() -> None:
    one, other = UUID(int=1 << 90), UUID(int=1 << 90 | 1)

    made = {derived_id(i, g, n) for i in (one, other) for g in ("billing", "billing1") for n in (0, 1, 10)}

    assert len(made) == 12


def test_a_foreign_record_has_one_id_by_topic_partition_and_offset() -> None:
    topic = UUID(int=7)

    made = {foreign_id(t, p, o) for t in (topic, UUID(int=8)) for p in (0, 1, 11) for o in (0, 1, 10)}

    assert len(made) == 18
    assert foreign_id(topic, 1, 10) in made
    assert all(i.version == 8 for i in made)


@given(IDS)
def test_an_id_is_read_as_it_is_written(one: UUID) -> None:
    """Fails when an id that was read isn't the same as one that was made: as a key of a dict, as text, as bytes."""
    for text in (str(one), one.hex, str(one).upper()):
        found = id_of(text.encode())
        assert found == one
        assert hash(found) == hash(one)
        assert (str(found), repr(found), found.bytes if found else b"") == (str(one), repr(one), one.bytes)


@given(
    st.one_of(
        st.none(),
        st.binary(max_size=40),
        st.text("0123456789abcdef-_+x {}", min_size=30, max_size=38).map(str.encode),
    )
)
def test_what_is_no_id_is_none(value: bytes | None) -> None:
    """Fails when reading an id raises, or takes for one what has no 32 digits."""
    found = id_of(value)
    digits = (value or b"").replace(b"-", b"")
    if (
        len(digits) == 32
        and len(value or b"") in {32, 36}
        and all(chr(c) in "0123456789abcdefABCDEF" for c in digits)
    ):
        assert found == UUID(digits.decode())
    else:
        assert found is None

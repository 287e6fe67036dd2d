import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.core.errors import UsageError
from packhorse.producer.slots import SLOTS, slot_of, slots_of


def test_slots_are_the_same_for_ever() -> None:
    """Writers of two versions run side by side and must lock the same slot for one key."""
    assert [slot_of(key) for key in ("", "N14228", "a", "ü", "x" * 512)] == [0, 366, 579, 469, 349]


@given(st.lists(st.text() | st.none()))
def test_slots_come_sorted_and_once_whatever_the_keys(keys: list[str | None]) -> None:
    found = slots_of(keys)
    assert found == sorted({slot_of(key) for key in keys if key is not None})
    assert all(0 <= slot < SLOTS for slot in found)


@pytest.mark.case("B-12")
def test_a_hundred_thousand_keys_are_at_most_1024_locks() -> None:
    """Fails when keys are locked one by one instead of by slot."""
    assert len(slots_of(str(n) for n in range(100_000))) == SLOTS


@pytest.mark.parametrize("wrong", ["N14228", b"N14228", [17], [b"N1"]])
def test_keys_are_a_list_of_texts(wrong: object) -> None:
    with pytest.raises(UsageError, match="text"):
        slots_of(wrong)  # type: ignore[arg-type]

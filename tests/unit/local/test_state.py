"""The state file: what comes back, what a cut leaves, who may change it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.core.errors import SettingsError
from packhorse.local.errors import StackFailed
from packhorse.local.processes import Identity
from packhorse.local.state import FILE, State, decode, encode, load, locked, save

IDENTITIES = st.builds(Identity, pid=st.integers(2, 4_194_304), born=st.text(min_size=1))
STATES = st.builds(
    State,
    ports=st.dictionaries(st.sampled_from(["kafka", "postgres"]), st.integers(1, 65_535)),
    processes=st.dictionaries(st.sampled_from(["kafka", "postgres"]), IDENTITIES),
    postgres_home=st.none() | st.text(),
)


@given(STATES)
def test_what_is_written_is_what_is_read(state: State) -> None:
    assert decode(encode(state)) == state


@pytest.mark.parametrize(
    "text",
    ["", "{", "[]", "null", '{"format": 2}', '{"format": 1}', '{"format": 1, "ports": [], "processes": 3}'],
)
def test_a_file_that_is_no_state_is_named_with_the_way_out(tmp_path: Path, text: str) -> None:
    (tmp_path / FILE).write_text(text)
    with pytest.raises(SettingsError, match=r"state\.json is no state of a local stack .* delete the file"):
        load(tmp_path)


def test_a_save_that_was_cut_leaves_the_old_state(tmp_path: Path) -> None:
    save(tmp_path, State(ports={"kafka": 1}))
    (tmp_path / f"{FILE}.partial").write_text('{"format": 1, "po')
    assert load(tmp_path).ports == {"kafka": 1}
    save(tmp_path, State(ports={"kafka": 2}))
    assert load(tmp_path).ports == {"kafka": 2}


def test_a_folder_without_a_state_remembers_nothing(tmp_path: Path) -> None:
    assert load(tmp_path) == State()


def test_forgetting_one_process_leaves_the_others() -> None:
    kafka, postgres = Identity(pid=10, born="a"), Identity(pid=11, born="b")
    both = State().with_process("kafka", kafka).with_process("postgres", postgres)
    assert both.with_process("kafka", None).processes == {"postgres": postgres}


def test_a_lock_that_another_holds_is_waited_for_and_said(tmp_path: Path) -> None:
    said: list[str] = []
    with (
        locked(tmp_path / "lock", what="this stack", within=1.0),
        pytest.raises(StackFailed, match=r"another command has held this stack \(.*/lock\) for 0.05 s"),
        locked(
            tmp_path / "lock", what="this stack", within=0.05, when_waiting=lambda: said.append("waiting")
        ),
    ):
        pass
    assert said == ["waiting"]
    with locked(tmp_path / "lock", what="this stack", within=0.05):
        pass


@pytest.mark.parametrize(("pid", "born"), [(0, "x"), (1, "x"), (-1, "x"), (2, "")])
def test_a_process_that_can_not_be_ours_has_no_identity(pid: int, born: str) -> None:
    with pytest.raises(ValueError, match="names no process of ours"):
        Identity(pid=pid, born=born)

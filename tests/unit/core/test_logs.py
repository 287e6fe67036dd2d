"""How the daemons log: fields by name, secrets out, one line a record."""

import io
import json
import logging
from collections.abc import Iterator

import pytest

from packhorse.core import logs


@pytest.fixture(autouse=True)
def _put_back() -> Iterator[None]:
    root = logging.getLogger("packhorse")
    handlers, level, propagate = root.handlers[:], root.level, root.propagate
    yield
    root.handlers[:], root.level, root.propagate = handlers, level, propagate


def written(form: logs.Form, event: str, **fields: logs.Value) -> str:
    stream = io.StringIO()
    logs.set_up(form, stream=stream, secrets=["hunter2"])
    logs.logger("relay").info(event, **fields)
    return stream.getvalue()


def test_json_is_one_object_a_line_with_the_fields_by_name() -> None:
    line = written("json", "saved", rows=3, trouble=None, text="two\nlines")
    assert line.count("\n") == 1
    found = json.loads(line)
    assert found["time"].endswith("Z")
    assert {name: found[name] for name in ("level", "part", "event", "rows", "trouble", "text")} == {
        "level": "info", "part": "relay", "event": "saved", "rows": 3, "trouble": None, "text": "two\nlines",
    }  # fmt: skip


def test_a_field_cannot_take_the_place_of_time_level_part_or_event() -> None:
    logger = logging.getLogger("packhorse.relay")
    stream = io.StringIO()
    logs.set_up("json", stream=stream)
    logger.info("saved", extra={"packhorse_fields": {"level": "loud", "event": "other"}})
    found = json.loads(stream.getvalue())
    assert (found["level"], found["event"]) == ("info", "saved")


def test_people_get_one_line_and_nothing_that_moves_a_terminal() -> None:
    line = written("people", "saved", rows=3, rate=1234.5678, none=None, text="\x1b[2Jtwo\nlines")
    assert line.count("\n") == 1
    assert "\x1b" not in line
    assert "info    relay: saved  rows=3  rate=1234.57" in line
    assert "none=" not in line


@pytest.mark.case("X-08")
@pytest.mark.parametrize("form", ["people", "json"])
def test_no_secret_is_written_wherever_it_stands(form: logs.Form) -> None:
    """Fails when a field or the event passes around redaction."""
    line = written(
        form,
        "no connection: password=s3cret",
        url="postgresql://app:s3cret@db/app",
        reason="host hunter2 unknown",
    )
    assert "s3cret" not in line
    assert "hunter2" not in line


def test_an_error_is_told_by_its_class_and_its_redacted_text() -> None:
    stream = io.StringIO()
    logs.set_up("json", stream=stream)
    logging.getLogger("packhorse.relay").error("failed", exc_info=ValueError("password=s3cret is wrong"))
    found = json.loads(stream.getvalue())
    assert (found["error"], found["text"]) == ("ValueError", "password=*** is wrong")


def test_the_environment_chooses_the_form(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(logs.FORM_VARIABLE, "json")
    stream = io.StringIO()
    logs.set_up(stream=stream)
    logs.logger("relay").warning("slow")
    assert json.loads(stream.getvalue())["level"] == "warning"


def test_setting_up_again_replaces_the_first() -> None:
    first, second = io.StringIO(), io.StringIO()
    logs.set_up("people", stream=first)
    logs.set_up("people", stream=second)
    logs.logger("relay").error("once")
    assert first.getvalue() == ""
    assert second.getvalue().count("once") == 1


def test_what_is_below_the_level_costs_no_line() -> None:
    assert written("people", "loud") != ""
    stream = io.StringIO()
    logs.set_up("people", stream=stream)
    logs.logger("relay").debug("quiet")
    assert stream.getvalue() == ""

"""A processor that can't be found on the command line: each mistake is named, with what to write instead."""

from pathlib import Path

import pytest

from packhorse.core.errors import UsageError
from packhorse.processor.loading import load


@pytest.mark.parametrize(
    ("target", "said"),
    [
        ("figures", "write module:app"),
        ("figures:", "write module:app"),
        ("./figures:app", "write module:app"),
        ("figures.py:app", "write the module: figures:app"),
        ("nowhere_at_all:app", "run it from the folder it lies in"),
        ("nowhere_at_all.inner:app", "there is no module nowhere_at_all"),
        ("mistaken_inside:app", "No module named 'needed_and_absent'; python -c 'import mistaken_inside'"),
        ("mistaken_syntax:app", "mistaken_syntax.py, line 2"),
        ("mistaken_raises:app", "KeyError at "),
        ("mistaken_kind:app", "mistaken_kind:app is int; a Processor is needed; processors there: figures"),
        ("mistaken_kind:other", "mistaken_kind:other does not exist; a Processor is needed"),
        ("mistaken_kind:figures", "has no handler"),
    ],
)
def test_a_mistake_is_named(target: str, said: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Fails when the cases of `_imported` are told as one, or the checks of the target's form are left out."""
    (tmp_path / "mistaken_inside.py").write_text("import needed_and_absent\n")
    (tmp_path / "mistaken_syntax.py").write_text("x = 1\ndef f(:\n")
    (tmp_path / "mistaken_raises.py").write_text("{}['secret']\n")
    (tmp_path / "mistaken_kind.py").write_text(
        "from packhorse.processor import Processor\napp = 17\nfigures = Processor('figures')\n"
    )
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(UsageError) as caught:
        load(target)
    assert said in str(caught.value)
    assert "secret" not in str(caught.value)

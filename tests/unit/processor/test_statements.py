"""Which statements a handler may not send: found behind comments, in strings of several, and not where they are quoted."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.processor.storing.guarding.statements import statements_of, verdict_on


@pytest.mark.parametrize(
    ("text", "found"),
    [
        (b"", []),
        (b" ; ;; ", []),
        (b"SELECT 1", [b"SELECT 1"]),
        (b"SELECT 'a;b''c;'; SELECT 2;", [b"SELECT ''", b"SELECT 2"]),
        (b"SELECT E'a\\';b'; COMMIT", [b"SELECT ''", b"COMMIT"]),
        (b"SELECT 'a\\'; COMMIT", [b"SELECT ''", b"COMMIT"]),
        (b'SELECT "a;""b;"; END', [b'SELECT "a;""b;"', b"END"]),
        (b"SELECT $$;$$, $a$;$$;$a$; END", [b"SELECT '', ''", b"END"]),
        (b"SELECT $1; END", [b"SELECT $1", b"END"]),
        (b"SELECT a$b$c FROM t; SELECT d$b$", [b"SELECT a$b$c FROM t", b"SELECT d$b$"]),
        (b"/* a /* b */ ; */ COMMIT -- ;", [b"COMMIT"]),
        (b"SELECT 'open; COMMIT", [b"SELECT ''"]),
        (b"SELECT /* open ; COMMIT", [b"SELECT"]),
        (b"SELECT name'x;'", [b"SELECT name''"]),
    ],
)
def test_a_text_is_parted_as_the_server_parts_it(text: bytes, found: list[bytes]) -> None:
    assert statements_of(text) == found


@given(st.text(st.sampled_from("'\"$;-/*aE \n\\"), max_size=30))
def test_any_text_is_parted_in_the_end(text: str) -> None:
    verdict_on(text.encode())


@given(
    st.lists(
        st.sampled_from(["SELECT ';'", "SELECT $x$ ; $x$", '"a;"', "-- ;\n", "/* ; */", "SELECT 1;"]),
        max_size=6,
    )
)
def test_a_commit_behind_anything_is_found(parts: list[str]) -> None:
    """Fails when quotes or comments of what stands before it hide it."""
    assert verdict_on(f"{' '.join(parts)}; COMMIT".encode()).refused.startswith("COMMIT is refused")


def test_savepoints_are_told_apart() -> None:
    verdict = verdict_on(
        b'SAVEPOINT a; ROLLBACK TO a; ROLLBACK WORK TO SAVEPOINT b; RELEASE c; RELEASE SAVEPOINT "A"'
    )
    assert (set(verdict.sets), set(verdict.uses)) == ({b"a"}, {b"b", b"c"})
    assert verdict_on(b"copy t from stdin").copies
    assert verdict_on(b"SAVEPOINT packhorse_x").refused

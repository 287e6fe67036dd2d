"""A connection string is refused when libpq would tear its password; the refusal quotes nothing."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from psycopg.conninfo import conninfo_to_dict, make_conninfo

from packhorse.schemas.conninfo import checked_conninfo

GOOD = [
    "postgresql://app@db/app",
    "postgres://app:secret@db:5432/app?sslmode=require",
    "postgresql://app:s%40c%2Fret@db1:5432,db2:5433/app?target_session_attrs=read-write",
    "postgresql:///app?host=/var/run/postgresql&user=a@b",
    "postgresql://[::1]:5432/app",
    "host=db user=app password='a b\\'c' dbname=app",
    "host=db password=",
    "dbname = app  user= app",
    "host=db password=postgresql://not-a-url",
]
TORN = [
    "postgresql://app:sec@secret@db/app",
    "postgresql://app:sec/secret@db/app",
    "postgresql://app:sec?secret@db/app",
    "postgresql://app:sec#secret@db/app",
    "postgresql://app:sec%secret@db/app",
    "postgresqll://app:secret@db/app",
    "postgres ql://app:secret@db/app",
    "host=db password='secret",
    "host=db pass word=secret",
    "secret",
    "",
    "  ",
]


@pytest.mark.parametrize("text", GOOD)
def test_what_libpq_reads_as_it_is_meant_passes(text: str) -> None:
    assert checked_conninfo(text) == text
    conninfo_to_dict(text)


@pytest.mark.case("X-08")
@pytest.mark.parametrize("text", TORN)
def test_a_torn_password_is_refused_and_not_quoted(text: str) -> None:
    """Fails when libpq gets to see it, or the refusal repeats a piece."""
    with pytest.raises(ValueError) as caught:  # noqa: PT011 its text is checked below
        checked_conninfo(text)
    assert "secret" not in str(caught.value)


@given(st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=20))
def test_any_password_passes_in_the_form_that_the_driver_writes(password: str) -> None:
    text = make_conninfo(host="db", user="app", password=password)
    assert checked_conninfo(text) == text

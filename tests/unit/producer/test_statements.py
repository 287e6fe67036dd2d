from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.producer.rows import Row
from packhorse.producer.sql import COLUMNS, queries_for
from packhorse.producer.statements import Bytes, Statement, Texts, Uuids, chunks, insert

QUERIES = queries_for("packhorse")


def row(n: int, *, payload: bytes | None = b"p", tenant: str | None = None) -> Row:
    values: dict[str, object] = dict.fromkeys(COLUMNS)
    values |= {"id": UUID(int=n), "aggregatetype": "account", "aggregateid": f"k{n}", "type": "bank.T"}
    values |= {"schema_version": "1", "payload": payload, "tenant": tenant}
    return tuple(values[name] for name in COLUMNS)


def statements(rows: list[Row]) -> list[Statement]:
    return list(insert(rows, QUERIES))


def test_one_row_is_a_plain_insert() -> None:
    assert statements([row(1)]) == [Statement(QUERIES.insert_one, row(1))]


def test_rows_that_share_all_but_four_columns_send_the_rest_once() -> None:
    (one,) = statements([row(1, tenant="t"), row(2, tenant="t", payload=None)])
    assert one.text == QUERIES.insert_alike
    assert one.text.count(b"%s") == len(one.parameters) == len(COLUMNS)
    assert one.parameters[-4:] == (
        Uuids((UUID(int=1), UUID(int=2))),
        Texts(("k1", "k2")),
        Bytes((b"p", None)),
        Texts((None, None)),
    )
    assert one.parameters[9] == "t"


def test_rows_that_differ_elsewhere_send_every_column() -> None:
    (one,) = statements([row(1, tenant="a"), row(2, tenant="b")])
    assert one.text == QUERIES.insert_mixed
    assert one.text.count(b"%s") == len(one.parameters) == len(COLUMNS)
    assert one.parameters[COLUMNS.index("tenant")] == Texts(("a", "b"))
    assert one.parameters[COLUMNS.index("payload")] == Bytes((b"p", b"p"))


@given(
    sizes=st.lists(st.integers(0, 30), max_size=40),
    most_rows=st.integers(1, 10),
    most_bytes=st.integers(1, 60),
)
def test_chunks_keep_every_row_in_order_within_both_bounds(
    sizes: list[int], most_rows: int, most_bytes: int
) -> None:
    rows = [row(n, payload=bytes(size)) for n, size in enumerate(sizes)]
    found = chunks(rows, most_rows=most_rows, most_bytes=most_bytes)
    assert [one for chunk in found for one in chunk] == rows
    for chunk in found:
        assert 0 < len(chunk) <= most_rows
        assert len(chunk) == 1 or sum(len(one[5]) for one in chunk) <= most_bytes


def test_an_ordinary_batch_is_one_statement() -> None:
    assert len(statements([row(n) for n in range(5_000)])) == 1
    assert len(statements([row(n) for n in range(5_001)])) == 2


@pytest.mark.parametrize("schema", ["Packhorse", "a b", 'x"; DROP', "1a", "pg_x", "", "a" * 64])
def test_a_schema_name_that_could_change_a_statement_is_refused(schema: str) -> None:
    from packhorse.core.errors import SettingsError

    with pytest.raises(SettingsError, match="database schema"):
        queries_for(schema)

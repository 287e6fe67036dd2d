"""The decoder of the stream, on bytes that a server sent and on bytes that none should."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.pgoutput import (
    COLUMNS,
    begin,
    commit,
    insert,
    keepalive,
    outbox_row,
    relation,
)

from packhorse.relay.cdc.pgoutput import Decoder
from packhorse.relay.cdc.stream import Cause, StreamUnavailable
from packhorse.relay.model import AGGREGATEID, SEQ

RECORDED = (
    bytes.fromhex(
        "770000000823cb1b100000000823cb1b1000030470f5b935f3420000000823cb217000030470f5b8fd9a0006fb2b"
    ),  # begin
    bytes.fromhex(
        "770000000000000000000000000000000000030470f5b9362a52000231507061636b686f727365006f7574626f7800640012"
        "0069640000000b86ffffffff00616767726567617465747970650000000019ffffffff006167677265676174656964000000"
        "0019ffffffff00747970650000000019ffffffff00736368656d615f76657273696f6e0000000019ffffffff007061796c6f"
        "61640000000011ffffffff007472616365706172656e740000000019ffffffff00747261636573746174650000000019ffff"
        "ffff00636f7272656c6174696f6e5f69640000000019ffffffff00636175736174696f6e5f69640000000019ffffffff006f"
        "726967696e0000000019ffffffff006163746f720000000019ffffffff0074656e616e740000000019ffffffff0065787069"
        "7265735f61740000000019ffffffff00686561646572730000000edaffffffff00637265617465645f6174000000045affff"
        "ffff0078696400000013cdffffffff007365710000000014ffffffff"
    ),  # outbox
    bytes.fromhex(
        "770000000823cb1b100000000823cb1b1000030470f5b9368f49000231504e00126200000010019b76daa800700080000000"
        "000000ff62000000066f726465727362000000076bc3a473652d31620000001073686f702e4f72646572506c616365646200"
        "00000131620000000300ff00620000003730302d346266393266333537376233346461366133636539323964306530653437"
        "33362d303066303637616130626139303262372d30316e6e6e6e6e6e6e6200000018017b2261223a206e756c6c2c20226222"
        "3a2022c3bc31227d62000000080002ea5dbb1f6f976200000008000000000006fb2b62000000080000000000030e0c"
    ),  # first
    bytes.fromhex(
        "770000000823cb20200000000823cb202000030470f5b9369749000231504e00126200000010019b76daa800700080000000"
        "0000010062000000066f72646572736e620000000e73686f702e4f72646572476f6e656200000001316e6e6e6e6e6e6e6e6e"
        "6e620000000880000000000000006200000008000000000006fb2b62000000080000000000030e0d"
    ),  # second
    bytes.fromhex(
        "770000000823cb21a00000000823cb21a000030470f5b9369d43000000000823cb21700000000823cb21a000030470f5b8fd"
        "9a"
    ),  # commit
)
"""One transaction of two rows, as Postgres 15 sent it: begin, the table, the rows, commit."""

ROWS = [
    (
        200204, "orders", "käse-1", b"\x00\xff\x00", 1767323045678, "019b76da-a800-7000-8000-0000000000ff",
        "shop.OrderPlaced", "1", "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01", *[None] * 7,
        '{"a": null, "b": "ü1"}', None,
    ),
    (
        200205, "orders", None, None, 0, "019b76da-a800-7000-8000-000000000100", "shop.OrderGone", "1", *[None] * 10,
    ),
]  # fmt: skip


def decoder(*messages: bytes, horizon: str = "1:1:", received: int = 0) -> Decoder:
    made = Decoder("packhorse", horizon=horizon, received=received)
    for message in messages:
        made.feed(message)
    return made


def seqs(made: Decoder) -> list[int]:
    return [row[SEQ] for row in made.take()]


def test_what_a_server_sent_becomes_the_rows_that_polling_reads() -> None:
    made = decoder(*RECORDED)
    assert made.take() == ROWS
    assert made.received == 34960253344
    assert not made.open


def test_rows_can_be_taken_before_their_transaction_has_ended_but_it_does_not_count_as_received() -> None:
    """Fails when the position moves with a row, or with a keepalive in the middle."""
    made = decoder(begin(), relation(), outbox_row(1), keepalive(900), received=50)
    assert seqs(made) == [1]
    assert made.received == 50
    made.feed(outbox_row(2))
    made.feed(commit(800))
    assert seqs(made) == [2]
    assert made.received == 800


def test_a_keepalive_between_transactions_moves_the_position_and_never_back() -> None:
    made = decoder(keepalive(900), keepalive(700), received=50)
    assert made.received == 900
    assert made.word
    assert not made.reply_wanted
    made.feed(keepalive(700, reply=True))
    assert made.reply_wanted


@pytest.mark.parametrize(
    ("xid", "comes"), [(4, False), (5, False), (6, True), (7, False), (8, True), (9, True), (2**40, True)]
)
def test_rows_that_the_horizon_sees_are_left_out(xid: int, comes: bool) -> None:
    """Fails when the comparison is with xmin or xmax alone."""
    made = decoder(relation(), begin(), outbox_row(1, xid=xid), commit(800), horizon="5:9:6,8")
    assert seqs(made) == ([1] if comes else [])


def test_each_row_of_one_transaction_is_judged_by_its_own_transaction_id() -> None:
    """Fails when the id of the row before is kept too long."""
    rows = [outbox_row(n, xid=xid) for n, xid in enumerate((4, 9, 4, 9), 1)]
    assert seqs(decoder(relation(), begin(), *rows, commit(800), horizon="5:9:6,8")) == [2, 4]


def test_rows_of_one_transaction_come_in_seq_order_and_transactions_in_commit_order() -> None:
    """Fails when everything is sorted, or nothing."""
    first = [begin(), outbox_row(9), outbox_row(7), outbox_row(8), commit(800)]
    second = [begin(), outbox_row(1), outbox_row(2), commit(900)]
    third = [begin(), outbox_row(5), outbox_row(4), commit(950)]
    made = decoder(relation(), *first, *second, *third)
    assert seqs(made) == [7, 8, 9, 1, 2, 4, 5]


def test_other_changes_and_descriptions_of_other_tables_pass() -> None:
    frame = bytes(24)
    others = [b"w" + frame + kind + b"anything" for kind in (b"O", b"Y", b"M", b"U", b"D", b"T")]
    partition = relation(table="outbox_default", number=7)
    assert seqs(decoder(partition, relation(), begin(), *others, outbox_row(1), commit(800))) == [1]


def test_columns_are_found_by_their_names() -> None:
    """Fails when a column's place is taken for granted: a table may have been altered."""
    columns = {"extra": 25, **dict(reversed(COLUMNS.items()))}
    values: dict[str, bytes | None] = dict.fromkeys(columns)
    values |= {
        "extra": b"\xff",
        "id": bytes(16),
        "aggregateid": b"key",
        "created_at": bytes(8),
        "xid": bytes(7) + b"\t",
    }
    values |= {"seq": struct.pack(">q", 3), "aggregatetype": b"o", "type": b"t", "schema_version": b"1"}
    (row,) = decoder(relation(columns), begin(), insert(list(values.values())), commit(8)).take()
    assert (row[SEQ], row[AGGREGATEID]) == (3, "key")


def test_a_table_described_anew_is_read_anew() -> None:
    columns = dict(reversed(COLUMNS.items()))
    values: dict[str, bytes | None] = dict.fromkeys(columns, b"1")
    values |= {"id": bytes(16), "created_at": bytes(8), "xid": bytes(7) + b"\t", "seq": struct.pack(">q", 3)}
    made = decoder(
        relation(), begin(), outbox_row(1), relation(columns), insert(list(values.values())), commit(8)
    )
    assert seqs(made) == [1, 3]


@pytest.mark.parametrize("missing", COLUMNS)
def test_a_column_that_is_missing_is_named(missing: str) -> None:
    columns = {name: type_ for name, type_ in COLUMNS.items() if name != missing}
    with pytest.raises(
        StreamUnavailable, match=rf"no column {missing} of packhorse\.outbox.*cdc-setup"
    ) as caught:
        decoder(relation(columns))
    assert caught.value.cause is Cause.NOT_SET_UP


@pytest.mark.parametrize("column", COLUMNS)
def test_a_column_of_another_type_is_named(column: str) -> None:
    """Fails when the bytes of one type are read as another's."""
    with pytest.raises(
        StreamUnavailable, match=f"column {column} of packhorse.outbox has the type with id 23"
    ):
        decoder(relation(COLUMNS | {column: 23}))


def test_rows_of_another_table_end_the_stream() -> None:
    """Fails when they are skipped: with a publication of partitions, all of ours would be."""
    partition = relation(table="outbox_20260101", number=7)
    with pytest.raises(StreamUnavailable, match=r"rows of packhorse\.outbox_20260101") as caught:
        decoder(relation(), partition, begin(), insert([None] * len(COLUMNS), number=7))
    assert caught.value.cause is Cause.NOT_SET_UP


WHOLE = [begin(), relation(), outbox_row(1), commit(800), keepalive(9)]


@pytest.mark.parametrize("broken", range(len(WHOLE)))
def test_a_message_that_ends_early_ends_the_stream(broken: int) -> None:
    """Fails when a short slice passes for a value: bytes would be cut off unseen."""
    for length in range(len(WHOLE[broken])):
        made = decoder(*WHOLE[:broken])
        with pytest.raises(StreamUnavailable) as caught:
            made.feed(WHOLE[broken][:length])
        assert caught.value.cause is Cause.STREAM_FAILED


@pytest.mark.parametrize(
    "message",
    [
        b"", b"x", b"w" + bytes(24) + b"S", b"w" + bytes(24) + b"\x00",
        insert([b"1"] * 17), insert([b"1"] * 19), insert([None] * 18), insert([b"\xff" * 16] * 18),
        insert([b"1"] * 18, number=99), outbox_row(1)[:-1], outbox_row(1) + b"x", outbox_row(1).replace(b"b\0", b"t\0", 1),
        outbox_row(1).replace(struct.pack(">I", 6) + b"orders", b"\xff\xff\xff\xfforders"),
    ],
)  # fmt: skip
def test_bytes_that_the_protocol_does_not_have_end_the_stream(message: bytes) -> None:
    made = decoder(relation(), begin())
    with pytest.raises(StreamUnavailable) as caught:
        made.feed(message)
    assert caught.value.cause is Cause.STREAM_FAILED
    assert made.take() == []


def cause_of(*messages: bytes) -> Cause | None:
    """Return how a stream of *messages* ends; None: it goes on."""
    try:
        decoder(*messages).take()
    except StreamUnavailable as error:
        return error.cause
    return None


@given(st.lists(st.binary(max_size=80) | st.sampled_from(WHOLE), max_size=8))
def test_no_bytes_raise_anything_else(messages: list[bytes]) -> None:
    assert cause_of(*messages) in (None, Cause.STREAM_FAILED, Cause.NOT_SET_UP)


@given(st.integers(0, len(outbox_row(1)) - 1), st.integers(0, 255))
def test_no_changed_byte_of_a_row_raises_anything_else(place: int, value: int) -> None:
    message = bytearray(outbox_row(1))
    message[place] = value
    assert cause_of(relation(), begin(), bytes(message)) in (None, Cause.STREAM_FAILED)

"""
From the bytes of `pgoutput` (protocol version 1, binary) to outbox rows; pure, no I/O.

Version 1, because it brings only whole committed transactions, in commit order: nothing to keep until an end that may
never come. The server spills a large one to its own disk and sends it when it commits.
"""

import struct
from collections.abc import Sequence
from operator import itemgetter
from typing import Any

from packhorse.core.message import HEADER_COLUMNS
from packhorse.relay.cdc.stream import Cause, StreamUnavailable
from packhorse.relay.model import SEQ, Row, Snapshot

_TEXT_TYPES = frozenset({25, 1043})
_TYPES = {"id": 2950, "payload": 17, "headers": 3802, "created_at": 1114, "xid": 5069, "seq": 20}
"""Type ids of uuid, bytea, jsonb, timestamp, xid8, bigint; every other column that we read is text."""
_ORDER = (
    "seq", "aggregatetype", "aggregateid", "payload", "created_at", *(column for _, column in HEADER_COLUMNS), "xid",
)  # fmt: skip
"""Columns in the order of model.Row, then the transaction id."""

_LSN = struct.Struct(">Q").unpack_from
_NUMBER = struct.Struct(">q").unpack_from
_SIZE = struct.Struct(">I").unpack_from
_SHORT = struct.Struct(">H").unpack_from
_EPOCH_MS = 946_684_800_000
"""2000-01-01 in Unix time: where Postgres counts from."""
_INFINITE = frozenset({2**63 - 1, -(2**63)})
_DATA, _KEEPALIVE = ord("w"), ord("k")
_KEEPALIVE_LENGTH = 18
_BEGIN, _COMMIT, _RELATION, _INSERT = b"BCRI"
_LENGTHS = {_BEGIN: 25 + 21, _COMMIT: 25 + 26}
_SKIPPED = frozenset(b"OYMUDT")
"""Origin, type, logical message, update, delete, truncate: nothing that a topic carries."""
_NULL, _BINARY = b"nb"
_BODY = 25
"""Where a message begins behind the frame of the stream: kind, two positions, a time."""
_INSERT_TUPLE = _BODY + 1 + 4 + 1
_MALFORMED = (IndexError, struct.error, UnicodeDecodeError, TypeError, AttributeError)
"""What reading past the end raises, or a column that is NULL and never may be."""


class _Layout:
    """Where the outbox's columns stand in a row, as a Relation message says."""

    __slots__ = ("columns", "in_order", "texts")

    def __init__(self, columns: Sequence[tuple[str, int]], table: str) -> None:
        places = {name: n for n, (name, _) in enumerate(columns)}
        if missing := [name for name in _ORDER if name not in places]:
            raise _not_ours(f"the stream has no column {', '.join(missing)} of {table}")
        for name in _ORDER:
            type_, wanted = columns[places[name]][1], _TYPES.get(name)
            if type_ != wanted and not (wanted is None and type_ in _TEXT_TYPES):
                raise _not_ours(f"column {name} of {table} has the type with id {type_}")
        self.columns = len(columns)
        self.texts = tuple(name in places and name in _ORDER and name not in _TYPES for name, _ in columns)
        self.in_order = itemgetter(*(places[name] for name in _ORDER))


class Decoder:
    """
    Take the messages of one stream in and gather rows.

    Attributes:
        rows: Decoded and not yet taken.
        size: Bytes of the messages that they came in.
        received: Every transaction whose commit lies before it has been taken in whole; never goes back.
        open: A transaction has begun and its end has not come.
        word: The server said how far it is, since this was last set to False.
        reply_wanted: The server asks for a sign of life; whoever gives it sets this to False.
    """

    __slots__ = (
        "_horizon", "_last", "_layouts", "_schema", "_seen", "_skip", "_start", "open", "received", "reply_wanted",
        "rows", "size", "word",
    )  # fmt: skip

    def __init__(self, schema: str, *, horizon: Snapshot, received: int) -> None:
        """Begin behind *received*; rows visible in *horizon* are left out."""
        self.rows: list[Row] = []
        self.size = 0
        self.received = received
        self.open = False
        self.word = False
        self.reply_wanted = False
        self._schema = schema
        self._horizon = Visible(horizon)
        self._layouts: dict[bytes, _Layout | str] = {}
        self._start = 0
        self._last = 0
        self._seen = b""
        self._skip = False

    def feed(self, data: "bytes | memoryview[int]") -> None:
        """
        Take one message of the stream in.

        Raises:
            StreamUnavailable: The bytes are none that the protocol has (stream_failed), or what is published is not
                the outbox as we know it (not_set_up). The stream can't go on.
        """
        data = bytes(data)
        try:
            if data[0] == _DATA:
                kind = data[_BODY]
                if kind == _INSERT:
                    self._insert(data)
                else:
                    self._other(kind, data)
            elif data[0] == _KEEPALIVE:
                self._keepalive(data)
            else:
                raise _no_protocol(f"a message of kind {data[:1]!r}")
        except _MALFORMED as error:
            raise _no_protocol(
                f"a message of {len(data)} bytes that ends early or holds what it can't"
            ) from error

    def take(self) -> list[Row]:
        """Return the rows gathered so far, and begin anew."""
        self._settle()
        rows, self.rows = self.rows, []
        self.size = self._start = 0
        return rows

    def _insert(self, data: bytes) -> None:
        """Decode one row; written out, because it runs for every row and each call of a function takes 0.1 of some 5 µs."""
        layout = self._layouts.get(data[_BODY + 1 : _BODY + 5])
        if layout.__class__ is not _Layout:
            raise self._foreign(layout)
        assert isinstance(layout, _Layout)
        (
            seq, topic, key, payload, created, id_, type_, version, parent, state, correlation, causation, origin, actor,
            tenant, expires, headers, xid,
        ) = layout.in_order(_values(data, layout))  # fmt: skip
        if xid != self._seen:  # mostly the same as of the row before
            self._skip = self._horizon.holds(_LSN(xid)[0])
            self._seen = xid
        if self._skip:
            return
        number, micros, name = _NUMBER(seq)[0], _NUMBER(created)[0], id_.hex()
        if number < self._last:
            self._last = -1
        elif self._last >= 0:
            self._last = number
        self.size += len(data)
        self.rows.append(
            (
                number, topic, key, payload, 0 if micros in _INFINITE else micros // 1000 + _EPOCH_MS,
                f"{name[:8]}-{name[8:12]}-{name[12:16]}-{name[16:20]}-{name[20:]}", type_, version, parent, state,
                correlation, causation, origin, actor, tenant, expires,
                None if headers is None else str(headers[1:], "utf-8"), None,
            )
        )  # fmt: skip

    def _other(self, kind: int, data: bytes) -> None:
        if len(data) != _LENGTHS.get(kind, len(data)):
            raise _no_protocol(f"a change of kind {bytes([kind])!r} in {len(data)} bytes")
        if kind == _BEGIN:
            self._settle()
            self.open = True
        elif kind == _COMMIT:
            self._settle()
            self.open = False
            self._reach(_LSN(data, _BODY + 10)[0])
        elif kind == _RELATION:
            self._relation(data)
        elif kind not in _SKIPPED:
            raise _no_protocol(f"a change of kind {bytes([kind])!r}")

    def _keepalive(self, data: bytes) -> None:
        """
        Take in how far the server is.

        Its position moves behind a transaction only when all of that is sent, so one that comes in the middle of a
        transaction says nothing about it.
        """
        if len(data) != _KEEPALIVE_LENGTH:
            raise _no_protocol(f"a sign of life of {len(data)} bytes")
        position = _LSN(data, 1)[0]
        self.reply_wanted = bool(data[17]) or self.reply_wanted
        self.word = True
        if not self.open:
            self._reach(position)

    def _reach(self, position: int) -> None:
        self.received = max(self.received, position)

    def _settle(self) -> None:
        """
        Put the open transaction's rows into seq order.

        They come in the order of the log, and COPY into several partitions may write that in another order than it drew.
        """
        if self._last < 0:
            self.rows[self._start :] = sorted(self.rows[self._start :], key=itemgetter(SEQ))
        self._start = len(self.rows)
        self._last = 0

    def _relation(self, data: bytes) -> None:
        at = _BODY + 5
        schema, at = _name(data, at)
        table, at = _name(data, at)
        columns = []
        count = _SHORT(data, at + 1)[0]
        at += 3
        for _ in range(count):
            name, at = _name(data, at + 1)
            columns.append((name, _SIZE(data, at)[0]))
            at += 8
        if at != len(data):
            raise _no_protocol(f"a table's description of {len(data)} bytes that ends at {at}")
        ours = (schema, table) == (self._schema, "outbox")
        self._layouts[data[_BODY + 1 : _BODY + 5]] = (
            _Layout(columns, f"{schema}.{table}") if ours else f"{schema}.{table}"
        )

    def _foreign(self, table: "_Layout | str | None") -> StreamUnavailable:
        """Refuse rows of another table: with another publication, rows of ours may be missing from the stream."""
        if table is None:
            return _no_protocol("a row of a table that it has not described")
        return _not_ours(
            f"the publication brings rows of {table}, and not those of {self._schema}.outbox as a whole"
        )


def _values(data: bytes, layout: _Layout) -> list[Any]:
    """Return a row's columns as the table has them, texts decoded."""
    if (columns := _SHORT(data, _INSERT_TUPLE)[0]) != layout.columns:
        raise _no_protocol(f"a row of {columns} columns instead of {layout.columns}")
    values: list[Any] = []
    add = values.append
    at = _INSERT_TUPLE + 2
    for text in layout.texts:
        kind = data[at]
        if kind == _BINARY:
            begin = at + 5
            at = begin + _SIZE(data, at + 1)[0]
            add(str(data[begin:at], "utf-8") if text else data[begin:at])
        elif kind == _NULL:
            add(None)
            at += 1
        else:
            raise _no_protocol(f"a column of kind {bytes([kind])!r}")
    if at != len(data):
        raise _no_protocol(f"a row of {len(data)} bytes whose columns end at {at}")
    return values


class Visible:
    """
    Tell which transactions a snapshot sees.

    >>> [Visible("5:9:6,8").holds(xid) for xid in (4, 5, 6, 7, 8, 9)]
    [True, True, False, True, False, False]
    """

    __slots__ = ("_running", "_xmax", "_xmin")

    def __init__(self, snapshot: Snapshot) -> None:
        xmin, xmax, running = snapshot.split(":")
        self._xmin, self._xmax = int(xmin), int(xmax)
        self._running = frozenset(int(xid) for xid in running.split(",") if xid)

    def holds(self, xid: int) -> bool:
        """Return True when the snapshot sees transaction *xid*."""
        return xid < self._xmin or (xid < self._xmax and xid not in self._running)


def _name(data: bytes, at: int) -> tuple[str, int]:
    """Return the text that ends with a NUL, and where the next field begins."""
    end = data.find(0, at)
    if end < 0:
        raise IndexError
    return str(data[at:end], "utf-8"), end + 1


def _no_protocol(what: str) -> StreamUnavailable:
    return StreamUnavailable(
        f"the server sent {what}, which the protocol does not have; rows are read by polling, and nothing is lost; "
        "look whether a proxy stands before the database",
        cause=Cause.STREAM_FAILED,
    )


def _not_ours(what: str) -> StreamUnavailable:
    return StreamUnavailable(f"{what}; run `packhorse relay cdc-setup`", cause=Cause.NOT_SET_UP)

"""The low-level replication connection: the driver has no interface for it, but all that is needed."""

import select
import struct
from typing import Any

import psycopg
from psycopg import generators, pq

from packhorse.core.redaction import without_secrets
from packhorse.relay.cdc import sql as cdc_sql
from packhorse.relay.cdc.stream import Cause, StreamUnavailable, lsn_text
from packhorse.relay.postgres.connection import Reach

_STATUS = struct.Struct(">cQQQqB")
_OPTIONS = "-c statement_timeout={statement} -c lock_timeout={lock} -c wal_sender_timeout={silence}"
_READABLE = select.POLLIN | select.POLLERR | select.POLLHUP


class Replication:
    """
    A connection that the server streams a slot over; every wait has a bound on this side of the network.

    libpq keeps one message beyond what was asked for, and some tens of KiB: what is not read stays in the socket, and
    then with the server.

    Attributes:
        read: Return the next message's length and bytes; 0: there is none yet; below 0: the stream has ended.
        pulls: So often must `pull` find nothing before the socket tells whether there is more: over TLS a piece that the
            socket has brought may still lie with the cipher.
    """

    def __init__(self, url: str, reach: Reach, *, silence: float) -> None:
        """
        Connect; the server ends the stream of a reader that is silent for *silence* seconds.

        Raises:
            StreamUnavailable: There is no such connection to be had.
        """
        milliseconds = int(reach.answer * 1000)
        try:
            self._connection = psycopg.Connection.connect(
                url,
                autocommit=True,
                replication="database",
                application_name="packhorse-relay",
                client_encoding="utf8",
                connect_timeout=max(int(reach.connect), 1),
                tcp_user_timeout=milliseconds,
                keepalives_idle=max(int(reach.answer), 1),
                keepalives_interval=1,
                keepalives_count=3,
                options=_OPTIONS.format(
                    statement=milliseconds * 4 // 5, lock=milliseconds // 2, silence=int(silence * 1000)
                ),
            )
        except psycopg.Error as error:
            raise _failed("no replication connection to the database", error) from error
        self._pgconn = self._connection.pgconn
        self._answer = reach.answer
        self._poll = select.poll()
        self._poll.register(self._pgconn.socket, _READABLE)
        self.read = self._pgconn.get_copy_data
        self.pulls = 2 if self._pgconn.ssl_in_use else 1

    @property
    def process(self) -> int:
        """Return the server process at the other end."""
        return self._pgconn.backend_pid

    def identity(self) -> tuple[str, int, str]:
        """Return the server's system identifier, its timeline, and the database's name."""
        result = self._command(cdc_sql.IDENTIFY_SYSTEM, pq.ExecStatus.TUPLES_OK)
        system, timeline, _, database = (result.get_value(0, n) or b"" for n in range(4))
        return system.decode(), int(timeline), database.decode()

    def start(self, *, slot: str, publication: str, at: int) -> None:
        """Begin to stream *slot* from *at*."""
        self._command(
            cdc_sql.START_REPLICATION.format(slot=slot, publication=publication, at=lsn_text(at)),
            pq.ExecStatus.COPY_BOTH,
        )

    def wait(self, seconds: float) -> None:
        """Wait until something can be read, at most *seconds*."""
        self._poll.poll(max(seconds, 0) * 1000)

    def pull(self) -> None:
        """Take in what the socket has, without waiting."""
        try:
            self._pgconn.consume_input()
        except psycopg.Error as error:
            raise _failed("the stream broke", error) from error

    def status(self, *, received: int, confirmed: int, micros: int, ask: bool) -> None:
        """Tell the server what is received and what it may forget, at *micros* since 2000; *ask* for word at once. Never waits."""
        message = _STATUS.pack(b"r", received, confirmed, confirmed, micros, ask)
        try:
            self._pgconn.put_copy_data(message)
            self._pgconn.flush()
        except psycopg.Error as error:
            raise _failed("the stream broke", error) from error

    def end(self) -> StreamUnavailable:
        """Return why the server ended the stream."""
        try:
            result = self._connection.wait(generators.fetch(self._pgconn), timeout=self._answer)
        except psycopg.Error as error:
            return _failed("the stream broke", error)
        if result is None or not result.error_message:
            return _ended_with("without a word; it was shut down, or the slot was taken away", None)
        return _ended(result)

    def close(self) -> None:
        """Leave; the server then lets the slot go."""
        self._connection.close()

    def _command(self, text: str, wanted: pq.ExecStatus) -> Any:
        """Run a command of the replication protocol, which has no parameters and no prepared form."""
        try:
            self._pgconn.send_query(text.encode())
            result = self._connection.wait(generators.execute(self._pgconn), timeout=self._answer)[0]
        except psycopg.Error as error:
            raise _failed("the database did not answer", error) from error
        if result.status != wanted:
            raise _ended(result)
        return result


def _failed(what: str, error: psycopg.Error) -> StreamUnavailable:
    first = str(error).strip().partition("\n")[0]
    cause = Cause.STREAM_FAILED
    if "max_wal_senders" in first or error.sqlstate == "42501":
        cause = Cause.NOT_SET_UP
    return StreamUnavailable(without_secrets(f"{what}: {first or type(error).__name__}"), cause=cause)


def _ended(result: pq.abc.PGresult) -> StreamUnavailable:
    text = result.error_message.decode(errors="replace").strip()
    return _ended_with(text, result.error_field(pq.DiagnosticField.SQLSTATE))


def _ended_with(text: str, code: bytes | None) -> StreamUnavailable:
    """Put the server's own words about the end of a stream into a cause."""
    first = without_secrets(text.partition("\n")[0])
    cause = {b"55006": Cause.SLOT_IN_USE, b"55000": Cause.SLOT_LOST}.get(code or b"", Cause.STREAM_FAILED)
    if code == b"42704":
        cause = Cause.NOT_SET_UP if "publication" in first else Cause.SLOT_LOST
    return StreamUnavailable(f"the server ended the stream: {first}", cause=cause)

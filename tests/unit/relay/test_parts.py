"""The relay's small parts: headers, spans, the lease keeper, settings, what status says."""

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.support.wait import eventually

from packhorse.core.clock import SYSTEM_CLOCK
from packhorse.core.errors import DatabaseUnavailable, NotReady, PackhorseError, SettingsError
from packhorse.core.message import HEADER_COLUMNS
from packhorse.core.telemetry import NO_TELEMETRY, Attributes, NoTelemetry, TraceContext
from packhorse.relay.compose import kafka_properties
from packhorse.relay.doing.lease import LeaseKeeper
from packhorse.relay.doing.tracing import MOST, sending, traced
from packhorse.relay.model import Row
from packhorse.relay.records import all_headers_of, headers_of
from packhorse.relay.settings import RelaySettings
from packhorse.relay.status import COUNTED, RelayStatus

TOKEN = UUID(int=1)
GIVEN = {
    "database_url": "postgresql://db/app",
    "kafka_bootstrap_servers": "broker:9092",
    "namespace": "shop",
}


def row(*columns: str | None, seq: int = 1) -> Row:
    """Return a row with *columns* where its headers come from."""
    rest: list[str | None] = [None] * (len(HEADER_COLUMNS) - len(columns))
    return (seq, "orders", "k", b"x", 0, *columns, *rest, None)


@given(st.lists(st.none() | st.text(), min_size=9, max_size=9))
def test_headers_stand_in_the_contract_s_order_and_absent_ones_are_left_out(
    optional: list[str | None],
) -> None:
    """Fails when records.headers_of and core's HEADER_COLUMNS drift apart."""
    columns = ["an-id", "t.T", "1", *optional]
    wanted = [
        (name, value) for (name, _), value in zip(HEADER_COLUMNS, columns, strict=True) if value is not None
    ]
    assert headers_of(row(*columns)) == wanted
    assert all_headers_of(row(*columns)) == [
        (name, value) for (name, _), value in zip(HEADER_COLUMNS, columns, strict=True)
    ]


class Spans(NoTelemetry):
    """Remember spans."""

    def __init__(self) -> None:
        self.made: list[tuple[str, TraceContext | None, int]] = []

    @contextmanager
    def span(
        self,
        name: str,
        *,
        parent: TraceContext | None = None,
        links: Sequence[TraceContext] = (),
        attributes: Attributes | None = None,
    ) -> Iterator[None]:
        self.made.append((name, parent, len(links)))
        yield


SAMPLED = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
NOT_SAMPLED = SAMPLED[:-1] + "0"


@pytest.mark.case("X-05")
def test_only_sampled_rows_get_spans_in_their_writers_trace() -> None:
    """Fails when a batch without a traced row makes a span, or a traced row has none."""
    spans = Spans()
    with sending(
        spans, [row("a", "t.T", "1", NOT_SAMPLED), row("b", "t.T", "1"), row("c", "t.T", "1", "rubbish")]
    ):
        pass
    assert spans.made == []
    with sending(spans, [row("a", "t.T", "1", NOT_SAMPLED), row("b", "t.T", "1", SAMPLED, "vendor=1")]):
        pass
    assert spans.made == [
        ("relay batch", None, 1),
        ("send t.T", TraceContext(traceparent=SAMPLED, tracestate="vendor=1"), 0),
    ]


def test_spans_of_one_batch_are_bounded() -> None:
    assert len(traced([row("a", "t.T", "1", SAMPLED)] * (MOST + 5))) == MOST
    with sending(NO_TELEMETRY, [row("a", "t.T", "1", SAMPLED)]):
        pass


class Table:
    """A lease's row whose answers a test gives."""

    def __init__(self) -> None:
        self.answer: int | Exception | None = 0
        self.asked = 0

    def renew(self, token: UUID, lease: float) -> int | None:
        assert token == TOKEN
        self.asked += 1
        if isinstance(self.answer, Exception):
            raise self.answer
        return self.answer

    def close(self) -> None:
        pass


@contextmanager
def keeper(table: Table, lease: float) -> Iterator[tuple[LeaseKeeper, threading.Event]]:
    halted = threading.Event()
    made = LeaseKeeper(table, lease=lease, clock=SYSTEM_CLOCK, halt=halted.set)
    try:
        yield made, halted
    finally:
        made.close()


@pytest.mark.case("R-14")
def test_the_lease_is_renewed_apart_from_the_relay_s_own_work() -> None:
    table = Table()
    with keeper(table, 0.3) as (made, halted):
        first = SYSTEM_CLOCK.monotonic() + 0.3
        made.keep(TOKEN, first)
        eventually(
            lambda: (made.deadline() or 0) > first + 0.3, what="the lease is renewed twice, by nobody's call"
        )
        assert not halted.is_set()


def test_orders_of_another_token_are_not_taken_for_those_of_this_one() -> None:
    """Fails when an answer that was on its way counts: a restored database counts less, and the relay would read orders for ever."""
    table = Table()
    table.answer = 7
    with keeper(table, 0.3) as (made, _):
        made.keep(TOKEN, SYSTEM_CLOCK.monotonic() + 0.3)
        eventually(lambda: made.orders() == 7, what="the orders are told")
        table.answer = 2
        made.keep(TOKEN, SYSTEM_CLOCK.monotonic() + 0.3)
        eventually(lambda: made.orders() == 2, what="the orders of the restored database are told")


@pytest.mark.case("R-12")
def test_a_refused_renewal_halts_the_broker_at_once() -> None:
    """Fails when the keeper only stops renewing: rows in the client's queue would go on leaving."""
    table = Table()
    table.answer = None
    with keeper(table, 0.3) as (made, halted):
        made.keep(TOKEN, SYSTEM_CLOCK.monotonic() + 0.1)
        assert halted.wait(5)
        assert made.deadline() is None


def test_a_lease_that_runs_out_unrenewed_halts_the_broker() -> None:
    table = Table()
    table.answer = DatabaseUnavailable("away")
    with keeper(table, 0.3) as (made, halted):
        made.keep(TOKEN, SYSTEM_CLOCK.monotonic() + 0.3)
        assert halted.wait(5)
        assert table.asked > 1, "it was tried until the end"


@pytest.mark.case("X-04")
def test_a_lease_is_renewed_again_when_a_right_has_come_back() -> None:
    """Fails when only what is away is awaited: the thread would die unseen, and each later lease run out."""
    table = Table()
    table.answer = NotReady("permission denied for table relay")
    with keeper(table, 0.3) as (made, halted):
        made.keep(TOKEN, SYSTEM_CLOCK.monotonic() + 0.3)
        assert halted.wait(5)
        table.answer = True
        last = SYSTEM_CLOCK.monotonic() + 0.3
        made.keep(TOKEN, last)
        eventually(lambda: (made.deadline() or 0) > last, what="the lease is renewed")


@pytest.mark.case("X-04")
def test_a_keeper_that_dies_halts_the_broker_and_says_so_to_the_relay() -> None:
    """Fails when the thread ends in silence: the relay would take a lease again and again, and lose each."""
    table = Table()
    table.answer = KeyError("nobody foresaw it")
    with keeper(table, 0.3) as (made, halted):
        made.keep(TOKEN, SYSTEM_CLOCK.monotonic() + 0.1)
        assert halted.wait(5)
        with pytest.raises(PackhorseError, match="nobody foresaw: KeyError; start the relay again"):
            made.deadline()
        with pytest.raises(PackhorseError):
            made.keep(TOKEN, SYSTEM_CLOCK.monotonic() + 9)


@pytest.mark.case("R-09")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("acks", "1"),
        ("enable.idempotence", "false"),
        ("max.in.flight.requests.per.connection", "100"),
        ("message.timeout.ms", "1000"),
        ("partitioner", "random"),
        ("enable.gapless.guarantee", "false"),
        ("delivery.report.only.error", "false"),
        ("retries", "3"),
        ("max.in.flight", "100"),
        ("request.required.acks", "1"),
        ("topic.acks", "1"),
        ("delivery.timeout.ms", "1000"),
        ("message.send.max.retries", "3"),
        ("transactional.id", "mine"),
        ("transaction.timeout.ms", "900000"),
    ],
)
def test_client_settings_that_would_break_order_are_refused_by_name(name: str, value: str) -> None:
    """Fails when the property is missing from OURS or RESERVED, or the client's second name for it from ALIASES."""
    settings = RelaySettings.load({**GIVEN, "kafka_properties": {name: value}}, environ={})
    with pytest.raises(SettingsError, match=name):
        kafka_properties(settings)


def test_other_client_settings_pass() -> None:
    settings = RelaySettings.load({**GIVEN, "kafka_properties": {"linger.ms": 7, "acks": "all"}}, environ={})
    assert kafka_properties(settings)["linger.ms"] == 7


@pytest.mark.parametrize(
    ("name", "value"),
    [("poll", 0), ("batch_rows", 0), ("lease", 0.5), ("poll", 3), ("database_timeout", "soon")],
)
def test_a_wrong_setting_is_named(name: str, value: object) -> None:
    with pytest.raises(SettingsError, match=f"(?i){name}"):
        RelaySettings.load(GIVEN, environ={f"PACKHORSE_RELAY_{name.upper()}": str(value)})


STATUS = RelayStatus(
    owner="host:1", epoch=3, lease_left=4.2, horizon="1:9:", target=None, progress=0, published=1_200, rate=50.0,
    saved_age=0.1, lag_rows=0, lag_seconds=None, trouble=None, trouble_age=None,
)  # fmt: skip


def test_status_says_who_owns_and_what_waits() -> None:
    said = dict(STATUS.lines())
    assert said["owner"] == "host:1, epoch 3, lease 4.2 s more"
    assert said["published"] == "1,200 rows, 50 a second"
    assert STATUS.healthy


def test_status_of_a_change_that_nobody_goes_on_with_names_the_commands() -> None:
    values = {name: getattr(STATUS, name) for name in STATUS.__slots__}
    owned = dict(RelayStatus(**{**values, "shards_wanted": 3}).lines())["owner"]
    assert "for a change to 3 shards" in owned
    left = RelayStatus(**{**values, "owner": None, "shards_wanted": 3})
    assert not left.healthy
    assert "`packhorse relay shards 3`" in dict(left.lines())["owner"]
    assert "--abort" in dict(left.lines())["owner"]


def test_status_of_a_troubled_relay_without_owner_is_not_healthy() -> None:
    values = {
        **{name: getattr(STATUS, name) for name in STATUS.__slots__},
        "owner": None,
        "trouble": "row 1",
        "trouble_age": 61.0,
    }
    found = RelayStatus(**{**values, "lag_rows": COUNTED, "lag_seconds": 12.5})
    said = dict(found.lines())
    assert not found.healthy
    assert "nobody" in said["owner"]
    assert said["waiting"] == "100,000+ rows, the oldest 12.5 s old"
    assert said["trouble"] == "row 1 (for 61 s)"

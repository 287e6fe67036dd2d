"""Which ports a stack takes, and that it keeps them."""

import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.local.ports import FIRST, LAST, assign, candidates, is_free

PORTS = st.integers(FIRST, FIRST + 12)
NAMES = st.sampled_from(["kafka", "kafka_controller", "postgres", "registry"])


@given(wanted=st.lists(NAMES, unique=True), remembered=st.dictionaries(NAMES, PORTS), busy=st.sets(PORTS))
def test_each_name_gets_a_free_port_of_its_own_and_keeps_it_while_it_is_free(
    wanted: list[str], remembered: dict[str, int], busy: set[int]
) -> None:
    if len(set(remembered.values())) < len(remembered):
        return
    chosen = assign(wanted, remembered, candidates(Path("/a")), lambda port: port not in busy)
    assert list(chosen) == wanted
    assert len(set(chosen.values())) == len(wanted)
    assert not busy & set(chosen.values())
    for name in wanted:
        if name in remembered and remembered[name] not in busy:
            assert chosen[name] == remembered[name]
        else:
            assert chosen[name] not in remembered.values()


def test_no_free_port_is_said_by_name() -> None:
    with pytest.raises(LookupError, match="no free port left between 20000 and 32000 for kafka"):
        assign(["kafka"], {}, candidates(Path("/a")), lambda _port: False)


def test_every_port_is_offered_once_and_two_folders_begin_at_different_ones() -> None:
    one, other = list(candidates(Path("/one"))), list(candidates(Path("/other")))
    assert sorted(one) == sorted(other) == list(range(FIRST, LAST))
    assert one[0] != other[0]
    assert list(candidates(Path("/one"))) == one


def test_the_range_lies_below_the_local_ports_of_outgoing_connections() -> None:
    drawn_from = Path("/proc/sys/net/ipv4/ip_local_port_range")
    lowest = int(drawn_from.read_text().split()[0]) if drawn_from.exists() else 49_152
    assert lowest >= LAST


def test_a_port_is_free_until_somebody_listens() -> None:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port = listener.getsockname()[1]
        listener.listen()
        assert not is_free(port)
    assert is_free(port)

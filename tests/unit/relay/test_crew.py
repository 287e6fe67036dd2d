"""One process's relays: what cannot begin is tried again, what ends badly ends the process, and a signal stops it."""

import os
import signal
import threading
from collections.abc import Callable
from types import FrameType

import pytest
from tests.support.wait import eventually

from packhorse.core.errors import DatabaseUnavailable, PackhorseError
from packhorse.relay.crew.crew import Crew
from packhorse.relay.crew.duties import Roster, ShardSeen


class Shards:
    """A roster that a test writes."""

    def __init__(self, count: int) -> None:
        self.count = count

    def look(self) -> Roster:
        return Roster(shards=tuple(ShardSeen(shard=n, leased=False) for n in range(self.count)), members=1)

    def leave(self) -> None:
        pass


class Worker:
    """A shard's relay that runs until it is stopped, or fails at once."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error
        self.owned = False
        self.closed = False
        self._end = threading.Event()

    def run(self) -> None:
        self.owned = True
        if self.error is not None:
            raise self.error
        self._end.wait()

    def stop(self) -> None:
        self._end.set()

    def close(self) -> None:
        self.closed = True


def running(crew: Crew) -> tuple[threading.Thread, list[BaseException]]:
    """Run *crew* in a thread; return it, and where its error goes."""
    errors: list[BaseException] = []

    def run() -> None:
        try:
            crew.run()
        except PackhorseError as error:
            errors.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    return thread, errors


@pytest.mark.case("R-13")
def test_a_shard_that_can_t_begin_is_tried_again_and_the_others_go_on() -> None:
    """Fails when a database that is away for a second, while a shard is taken over, ends the shards that run."""
    attempts: list[int] = []
    workers: dict[int, Worker] = {}

    def make(shard: int) -> Worker:
        attempts.append(shard)
        if shard == 1 and attempts.count(1) < 3:
            raise DatabaseUnavailable("away")
        workers[shard] = Worker()
        return workers[shard]

    roster = Shards(1)
    crew = Crew(roster, make, pause=0.01)
    thread, errors = running(crew)
    eventually(lambda: 0 in workers and workers[0].owned, what="the first shard runs")
    roster.count = 2
    eventually(lambda: 1 in workers and workers[1].owned, what="the second shard runs")
    assert not workers[0].closed
    crew.stop()
    thread.join(10)
    assert (errors, workers[0].closed, workers[1].closed) == ([], True, True)


@pytest.mark.parametrize("count", [1, 2])
def test_at_the_start_what_is_missing_ends_the_process(count: int) -> None:
    def make(shard: int) -> Worker:
        if shard == count - 1:
            raise DatabaseUnavailable("away")
        return Worker()

    with pytest.raises(DatabaseUnavailable):
        Crew(Shards(count), make, pause=0.01).run()


def test_an_error_in_one_shard_s_thread_stops_the_others_and_is_told() -> None:
    workers = [Worker(), Worker(PackhorseError("nobody foresaw it"))]
    thread, errors = running(Crew(Shards(2), lambda shard: workers[shard], pause=0.01))
    thread.join(10)
    assert [str(error) for error in errors] == ["nobody foresaw it"]
    assert all(worker.closed for worker in workers)


def test_a_signal_stops_it_while_it_sleeps() -> None:
    """Fails when a stop is heard at the next look at the roster only."""
    worker = Worker()
    crew = Crew(Shards(1), lambda shard: worker, pause=60)
    caught: list[Callable[[int, FrameType | None], object] | int | None] = []
    over = threading.Event()

    def strike() -> None:
        eventually(lambda: worker.owned, what="the shard runs")
        os.kill(os.getpid(), signal.SIGUSR1)
        over.wait(10)

    caught.append(signal.signal(signal.SIGUSR1, lambda *_: crew.stop()))
    thread = threading.Thread(target=strike)
    try:
        thread.start()
        crew.run()
    finally:
        over.set()
        thread.join()
        signal.signal(signal.SIGUSR1, caught[0])

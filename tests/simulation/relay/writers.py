"""Applications that write the outbox: interleaved, long, rolled back, to savepoints, with and without a flush at commit."""

from collections.abc import Iterator
from random import Random

from tests.simulation.relay.broker import Topic
from tests.simulation.relay.database import Database, Transaction


class Writer:
    """
    One application; each step is a point between two statements, or inside a commit.

    A crash of the database ends its transaction where it is.
    """

    def __init__(
        self,
        database: Database,
        topic: Topic,
        random: Random,
        locks: dict[str, Transaction] | None,
        *,
        transactions: int = 3,
    ) -> None:
        self._database = database
        self._topic = topic
        self._random = random
        self._locks = locks
        self._left = random.randint(1, transactions)
        self._steps: Iterator[None] = iter(())
        self._born = database.incarnation
        self._transaction: Transaction | None = None

    def step(self) -> bool:
        """Go on; False at the end."""
        if self._born != self._database.incarnation:
            if not self._outlived():
                self._over()
                self._steps = iter(())
            self._born = self._database.incarnation
        if next(self._steps, self) is not self:
            return True
        self._over()
        if not self._left:
            return False
        self._left -= 1
        self._transaction = self._database.begin()
        self._steps = self._work(self._transaction)
        return True

    def _outlived(self) -> bool:
        """Tell whether a prepared transaction is still there after the crash; it is committed later, as it must be."""
        transaction = self._transaction
        if transaction is None or self._database.running.get(transaction.xid) is not transaction:
            return False
        self._steps = self._commit(transaction)
        return True

    def _over(self) -> None:
        if self._transaction is not None:
            if self._born == self._database.incarnation:
                self._database.abort(self._transaction)
            locks = self._locks or {}
            for key in [key for key, owner in locks.items() if owner is self._transaction]:
                del locks[key]
            self._transaction = None

    def _work(self, transaction: Transaction) -> Iterator[None]:
        random = self._random
        keys = sorted(random.sample("ABC", random.randint(1, 2)))
        for key in keys:
            while self._locks is not None and self._locks.setdefault(key, transaction) is not transaction:
                yield
            yield from self._insert(transaction, key)
        for _ in range(random.randint(20, 60) if random.random() < 0.15 else 0):
            yield
        if random.random() < 0.05:
            for _ in range(random.randint(5, 15)):
                yield
                yield from self._insert(transaction, keys[0])
        if random.random() < 0.1:
            self._database.prepare(transaction)
            for _ in range(random.randint(0, 40)):
                yield
            yield from self._commit(transaction)
        elif random.random() < 0.85:
            yield from self._commit(transaction)

    def _insert(self, transaction: Transaction, key: str) -> Iterator[None]:
        database, random = self._database, self._random
        kept = len(transaction.rows)
        for _ in range(random.choice((1, 1, 2, 4))):
            yield
            seq = database.draw()
            yield
            name = f"{key}{seq}-{transaction.xid}-{database.incarnation}"
            if random.random() < self._topic.bad_share:
                random.choice((self._topic.refused, self._topic.too_large)).add(name)
            database.insert(transaction, seq, key, name)
        if random.random() < 0.1:
            database.undo_from(transaction, random.randint(kept, len(transaction.rows)))

    def _commit(self, transaction: Transaction) -> Iterator[None]:
        lsn = self._database.log_commit(transaction)
        yield
        if self._random.random() < 0.5:
            self._database.flush(lsn)
            yield
        self._database.show(transaction, lsn)

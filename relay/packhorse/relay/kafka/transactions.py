"""
Fencing at the broker: one transaction after the other under a name that one client has at a time.

Whoever begins under the name last has it. What another had sent and not committed is undone then, and whatever it sends later is
refused, so that readers of committed records never see what a relay sends after its successor.
"""

import contextlib

from confluent_kafka import KafkaException, Producer

from packhorse.core.clock import Clock
from packhorse.core.errors import BrokerUnavailable
from packhorse.relay.kafka.properties import TRANSACTION_SECONDS

_BEGIN_WITHIN = 5.0
_COMMIT_WITHIN = 0.05
"""Least seconds for a commit whose rows have all arrived."""
_ABORT_WITHIN = 1.0


class Transactions:
    """
    The transactions of one client: `begin` before rows are handed over, `commit` when they have arrived.

    Both let the client's own error through when the client is beyond use.
    """

    def __init__(self, producer: Producer, clock: Clock) -> None:
        self._producer = producer
        self._clock = clock
        self._named = False
        self._committing = False
        self._since: float | None = None

    def begin(self) -> bool:
        """
        Begin a transaction unless one is open; take the name first when this client has not yet.

        The caller owns the shard at this moment. If it is frozen from here on until another relay owns it and takes the name back
        by this call, nothing comes of it: it commits only after it has looked at its lease again.

        Returns:
            False when nothing may be handed over before the open transaction is committed.

        Raises:
            BrokerUnavailable: The broker does not give the name yet.
        """
        if self._since is not None:
            return not self._committing and self._age() < TRANSACTION_SECONDS / 2
        try:
            if not self._named:
                self._producer.init_transactions(_BEGIN_WITHIN)
                self._named = True
            self._producer.begin_transaction()
        except KafkaException as error:
            cause = error.args[0]
            if cause.fatal() or not cause.retriable():
                raise
            raise BrokerUnavailable(f"the broker begins no transaction: {cause.str()}") from error
        self._since = self._clock.monotonic()
        return True

    def _age(self) -> float:
        return 0.0 if self._since is None else self._clock.monotonic() - self._since

    def outlived(self) -> bool:
        """Tell whether the broker may have undone the open transaction because it took too long."""
        return self._age() >= TRANSACTION_SECONDS

    def commit(self, patience: float) -> bool:
        """Commit; False: not done yet, to be asked for again."""
        if self._since is None:
            return True
        self._committing = True
        try:
            self._producer.commit_transaction(max(patience, _COMMIT_WITHIN))
        except KafkaException as error:
            if error.args[0].retriable() and not error.args[0].fatal():
                return False
            raise
        self._committing, self._since = False, None
        return True

    def abort(self) -> None:
        """
        Undo the open transaction within a second; where that fails, the next client of the name does it, or the broker in time.

        The client is not closed: that would wait for the undoing without a bound. It ends with its last reference.
        """
        if self._since is not None:
            with contextlib.suppress(KafkaException):
                self._producer.abort_transaction(_ABORT_WITHIN)
        self._since = None

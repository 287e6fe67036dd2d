"""What contexts of jobs work with: the ledger, the tables, the clock."""

from dataclasses import dataclass

from packhorse.core.clock import Clock
from packhorse.processor.jobs.ledger import Ledger
from packhorse.processor.storing.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTools:
    """What contexts of jobs work with; safe to share."""

    ledger: Ledger
    store: Store
    clock: Clock

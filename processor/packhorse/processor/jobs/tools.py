"""What contexts of jobs work with: the ledger, the tables, the clock."""

from dataclasses import dataclass

from packhorse.core.clock import Clock
from packhorse.processor.jobs.effects.sql import EffectQueries, effect_queries
from packhorse.processor.jobs.ledger import Ledger
from packhorse.processor.jobs.sql_steps import StepQueries, step_queries
from packhorse.processor.storing.store import Store


@dataclass(frozen=True, slots=True, kw_only=True)
class JobTools:
    """What contexts of jobs work with; safe to share."""

    ledger: Ledger
    store: Store
    clock: Clock

    @property
    def effects(self) -> EffectQueries:
        """Return the statements on outside effects."""
        return effect_queries(self.store.schema)

    @property
    def steps(self) -> StepQueries:
        """Return the statements on steps."""
        return step_queries(self.store.schema)

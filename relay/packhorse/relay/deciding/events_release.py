"""What happened to a release of a hold, through the second client."""

from dataclasses import dataclass

from packhorse.relay.holds import Fault, Scope
from packhorse.relay.model import Batch


@dataclass(frozen=True, slots=True)
class ScopeProbed:
    """What still keeps the scope from being sent to; None: nothing that the broker tells."""

    scope: Scope
    obstacle: str | None


@dataclass(frozen=True, slots=True)
class HeldFetched:
    """Rows of a hold came, or none."""

    batch: Batch


@dataclass(frozen=True, slots=True)
class HeldSent:
    """The second client took the first `count` of the rows that it was given."""

    count: int


@dataclass(frozen=True, slots=True)
class HeldConfirmed:
    """The broker has confirmed every row of the release sent so far."""


@dataclass(frozen=True, slots=True)
class HeldUnconfirmed:
    """Confirmations of the release are still missing."""


@dataclass(frozen=True, slots=True)
class HeldRefused:
    """The release stopped; as Refused."""

    fault: Fault | None
    reason: str
    broken: bool
    sent: int = 0


@dataclass(frozen=True, slots=True)
class ReleaserRenewed:
    """The second client was closed; nothing of the release is on its way. As SenderRenewed."""

    fault: Fault | None = None


ReleaseEvent = (
    ScopeProbed | HeldFetched | HeldSent | HeldConfirmed | HeldUnconfirmed | HeldRefused | ReleaserRenewed
)

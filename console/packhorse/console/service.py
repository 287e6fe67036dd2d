"""The operators' service of one person: every act and every answer, whatever face asks, room by room."""

from dataclasses import dataclass

from packhorse.console.acting.service import People
from packhorse.console.audit.service import Audit
from packhorse.console.finding.service import Finding
from packhorse.console.jobs.service import Jobs
from packhorse.console.offsets.service import Offsets
from packhorse.console.operators.service import Operators
from packhorse.console.pausing.service import Pausing
from packhorse.console.processing.service import Processing
from packhorse.console.purging.service import Purging
from packhorse.console.quarantine.groups.service import Groups
from packhorse.console.quarantine.restoring.service import Restoring
from packhorse.console.quarantine.service import Quarantine
from packhorse.console.reconciling.service import Reconciling
from packhorse.console.redriving.edits import Edits
from packhorse.console.redriving.service import Redrives
from packhorse.console.relaying.service import Relaying
from packhorse.console.replaying.service import Replays
from packhorse.console.top.service import Top
from packhorse.console.truth.service import Truth


@dataclass(frozen=True, slots=True, kw_only=True)
class Service:
    """What one person may ask for and do."""

    people: People
    operators: Operators
    audit: Audit
    pausing: Pausing
    processing: Processing
    purging: Purging
    truth: Truth
    finding: Finding
    quarantine: Quarantine
    jobs: Jobs
    groups: Groups
    restoring: Restoring
    relaying: Relaying
    replays: Replays
    offsets: Offsets
    top: Top
    reconciling: Reconciling
    redrives: Redrives
    edits: Edits

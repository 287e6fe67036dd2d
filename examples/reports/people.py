"""Who asks: two people without passwords, since this is an example."""

from examples.reports.messages import ReportRequest
from packhorse.core.clock import SYSTEM_CHANCE
from packhorse.core.errors import NotSignedIn
from packhorse.producer import Job
from packhorse.producer.jobs.web import Act, Asked, Caller

PEOPLE = {"ann": Caller(actor="ann", tenant="north"), "ben": Caller(actor="ben", tenant="south")}
COOKIE = "reports"


class Sessions:
    """Who is signed in; in memory."""

    def __init__(self) -> None:
        self._people: dict[str, Caller] = {}

    def begin(self, person: str) -> str:
        """Return a token that stands for *person* from now on."""
        token = SYSTEM_CHANCE.secret(24).hex()
        self._people[token] = PEOPLE[person]
        return token

    def of(self, cookies: str | None) -> Caller | None:
        """Return whom the header *cookies* stands for."""
        pairs = (one.strip().partition("=") for one in (cookies or "").split(";"))
        return next((self._people.get(value) for name, _, value in pairs if name == COOKIE), None)

    def authorise(self, asked: Asked) -> Caller | None:
        """Let people ask for reports, and see and cancel their own; raise NotSignedIn for nobody."""
        caller = self.of(asked.header("cookie"))
        if caller is None:
            raise NotSignedIn("no session")
        return caller if asked.act is Act.SUBMIT or _is_own(caller, asked.job) else None


def _is_own(caller: Caller, job: Job | None) -> bool:
    kind = ReportRequest.__packhorse__.type
    return job is not None and job.type == kind and job.actor == caller.actor

"""
Which pictures of the console there are, and which page each shows. Pure: no browser, no I/O.

`docs/console.md` is the tour of them; `make screenshots` takes them anew (`docs/console/take.py`).
"""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

HERE = Path(__file__).parent
TOUR = HERE.parent / "console.md"
README = HERE.parents[1] / "README.md"
WIDE = 1280
PHONE = 390
MOST_BYTES = 120_000
"""Of one picture: a page of them is to open on a slow line, too."""
MOST_BYTES_TOGETHER = 2_000_000


@dataclass(frozen=True, slots=True, kw_only=True)
class Picture:
    """
    One picture.

    Attributes:
        name: Of its file, without what it ends with.
        route: Of the page, as the console has it.
        also: Routes whose pages are made of the same parts and look alike, so that this picture stands for them.
        width: Pixels.
        tallest: Pixels; what is below them is not shown.
        is_dark: In the dark colours.
    """

    name: str
    route: str
    also: tuple[str, ...] = ()
    width: int = WIDE
    tallest: int = 1000
    is_dark: bool = False

    @property
    def file(self) -> str:
        """Return the name of its file."""
        return f"{self.name}.webp"


_MESSAGE = "/quarantine/{message_id:uuid}"
_JOB = "/jobs/{job_id}"
_GROUP = "/groups/{group:path}"
# Each act is previewed on a page of one form: what it is about, what will happen, why, and one button.
_PREVIEWS = (
    *(f"{_MESSAGE}/{act}" for act in ("unmask", "discard", "restore")),
    *(f"/quarantine/failures/{{failure}}/{act}" for act in ("acknowledge", "unacknowledge")),
    *(f"{_JOB}/{act}" for act in ("cancel", "redrive", "send", "unmask")),
    *(f"/keys/{act}" for act in ("pause", "resume")),
    "/replays/{number}/{act}",
    "/relay/holds/{hold}/discard",
    "/people/remove",
)

PICTURES = (
    Picture(name="sign-in", route="/sign-in", also=("/sign-in/link",)),
    Picture(name="nothing-yet", route="/runs"),
    Picture(name="not-known", route=_JOB),
    Picture(name="quarantine", route="/quarantine"),
    Picture(name="quarantine-messages", route="/quarantine/messages", tallest=800),
    Picture(name="failure", route="/quarantine/failures/{failure}"),
    Picture(name="quarantined", route=_MESSAGE, tallest=1800),
    Picture(name="edit", route=f"{_MESSAGE}/edit"),
    Picture(name="preview", route=f"{_MESSAGE}/redrive", also=_PREVIEWS),
    Picture(name="search", route="/search"),
    Picture(name="key", route="/keys"),
    Picture(name="redrive-set", route="/quarantine/redrive", tallest=1100),
    Picture(name="redrive", route="/redrives/{number}", tallest=770),
    Picture(name="redrive-confirm", route="/redrives/{number}/{act}"),
    Picture(name="redrive-running", route="/redrives/{number}"),
    Picture(name="message", route="/messages/{message_id}", tallest=1700),
    Picture(name="replay-new", route="/replays/new", tallest=1100),
    Picture(name="replay", route="/replays/{number}", tallest=1400),
    Picture(name="runs", route="/runs"),
    Picture(name="jobs", route="/jobs"),
    Picture(name="job", route=_JOB, tallest=1200),
    Picture(name="job-resolve", route=f"{_JOB}/resolve", tallest=1300),
    Picture(
        name="job-asked",
        route=f"{_JOB}/cancel/asked",
        also=("/sent/{once:uuid}", *(f"{_JOB}/{act}/asked" for act in ("redrive", "send", "resolve"))),
    ),
    Picture(name="relay", route="/relay", tallest=1500),
    Picture(name="holds", route="/relay/holds"),
    Picture(name="hold", route="/relay/holds/{hold}"),
    Picture(name="release", route="/relay/holds/release"),
    Picture(name="groups", route="/groups"),
    Picture(name="group", route=_GROUP, tallest=2100),
    Picture(name="parked", route=f"{_GROUP}/parked", tallest=800),
    Picture(name="offsets", route=f"{_GROUP}/offsets"),
    Picture(name="pause", route=f"{_GROUP}/pause", also=(f"{_GROUP}/resume",)),
    Picture(name="paused", route=f"{_GROUP}/paused"),
    Picture(name="audit", route="/audit", tallest=800),
    Picture(name="people", route="/people", tallest=1300),
    Picture(name="overview", route="/"),
    Picture(name="overview-dark", route="/", is_dark=True, tallest=1600),
    Picture(name="overview-phone", route="/", width=PHONE, tallest=1100),
)
"""In the order in which they are taken."""


def not_shown(routes: Iterable[str]) -> list[str]:
    """
    Return those of *routes* that no picture shows or stands for.

    >>> not_shown(["/", "/people/remove", "/nothing"])
    ['/nothing']
    """
    shown = {route for picture in PICTURES for route in (picture.route, *picture.also)}
    return sorted(set(routes) - shown)

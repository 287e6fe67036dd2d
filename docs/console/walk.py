"""One walk through the whole console, as somebody on call takes it, with a picture of each page."""

import re
from uuid import UUID

from docs.console.airline import Airline
from docs.console.camera import Camera
from playwright.sync_api import Page, expect

from examples.flights.serving.schedule import Kind

NOBODY = "019b76da-a800-7000-8000-000000000000"
GROUP, TOPIC = "figures", "airline.aircraft"
_HALF_DONE = """
SELECT id FROM packhorse.job
WHERE state = 'running' AND accepted_at > %(began)s
    AND progress_done >= 5 AND started_at < clock_timestamp() - interval '10 seconds'  -- a quick one is through in less
LIMIT 1
"""


class Walk:
    """The walk, part by part; each leaves behind what the following ones show."""

    def __init__(self, page: Page, camera: Camera, airline: Airline) -> None:
        self._page = page
        self._camera = camera
        self._airline = airline

    def come_in(self, token: str) -> None:
        """Show the door and go through it with *token*, and what there is before anything was done."""
        take = self._camera.take
        take("sign-in", "/sign-in")
        self._page.get_by_label("Your token").fill(token)
        self._page.get_by_role("button", name="Sign in").click()
        self._page.wait_for_url(f"{self._airline.console}/")
        take("nothing-yet", "/runs")
        take("not-known", f"/jobs/{NOBODY}", status=404)

    def quarantine(self, aircraft: str, poison: UUID) -> None:
        """Show what rests, from the groups of failures to one message, and what is offered about it."""
        take, page = self._camera.take, self._page
        take("quarantine-messages", "/quarantine/messages")
        self._camera.go("/quarantine")
        page.get_by_role("link", name=re.compile("FlightDeparted|FlightArrived")).first.click()
        page.get_by_label("A note").fill("The column for minutes was too narrow; it is wider now")
        page.get_by_role("button", name="Write it down").click()
        page.get_by_text("it is wider now").first.wait_for()
        take("failure")
        take("quarantine", "/quarantine")
        here = f"group={GROUP}&topic={TOPIC}"
        take("quarantined", f"/quarantine/{poison}?{here}")
        take("edit", f"/quarantine/{poison}/edit?{here}")
        self._camera.go(f"/quarantine/{poison}/redrive?{here}")
        self._why("the distance is known by now")
        take("preview")
        take("search", f"/search?q={aircraft}")
        take("key", f"/keys?{here}&key={aircraft}")

    def redrive(self, reason: str) -> None:
        """Freeze what was refused for *reason*, confirm it, and show it going, and the way of a message that is done by it."""
        take, page = self._camera.take, self._page
        self._camera.go(f"/quarantine/redrive?group={GROUP}&reason={reason}")
        page.get_by_label("Messages a second, at most").fill("0.4")
        page.get_by_label("Stages").fill("3")
        take("redrive-set")
        page.get_by_role("button", name="Freeze and preview").click()
        page.wait_for_url("**/redrives/*")
        take("redrive")
        page.get_by_role("link", name="Confirm and redrive").click()
        self._why("the column is wider now")
        take("redrive-confirm")
        page.get_by_role("button", name=re.compile("^Redrive")).click()
        page.wait_for_url(re.compile(r"/redrives/\d+$"))
        done = "SELECT message_id FROM packhorse.redrive_member WHERE state = 'good' ORDER BY ordinal OFFSET 5 LIMIT 1"
        message = self._airline.wait_for("six members are done", done)
        page.reload()
        take("redrive-running")
        take("message", f"/messages/{message}")

    def replay(self) -> None:
        """Plan a replay, and show it going, and the list of what ran and runs."""
        take, page = self._camera.take, self._page
        self._camera.go(f"/replays/new?group={GROUP}&topic={TOPIC}")
        page.get_by_label("From", exact=True).fill("3m")
        take("replay-new")
        page.get_by_text("Only some of it, and how").click()
        page.get_by_label("Do again what is done").check()
        page.get_by_label("Messages a second, at most").fill("40")
        page.get_by_role("button", name="Read the range and plan").click()
        page.wait_for_url(re.compile(r"/replays/\d+$"))
        page.get_by_role("link", name="Confirm and replay").click()
        self._why("figures of the last minutes were wrong")
        page.get_by_role("button", name=re.compile("^Replay")).click()
        page.wait_for_url(re.compile(r"/replays/\d+$"))
        read = "SELECT sum(position - first) > 1000 FROM packhorse.replay_partition"
        self._airline.wait_for("the replay is well on its way", read)
        page.reload()
        take("replay")
        take("runs", "/runs")

    def jobs(self) -> None:
        """Show the jobs, one that runs, one that nobody but a person can decide, and one that is asked to stop."""
        take, page = self._camera.take, self._page
        began = self._airline.asked("SELECT clock_timestamp()")
        self._airline.ask_for(Kind.SLOW_REPORT, Kind.REPORT, Kind.DOUBTFUL_REPORT, Kind.LATER_REPORT)
        job = self._airline.wait_for("the slow job is half done", _HALF_DONE, began=began)
        take("jobs", "/jobs")
        take("job", f"/jobs/{job}")
        page.get_by_role("link", name="Ask it to stop").click()
        self._why("asked for twice")
        page.get_by_role("button", name="Ask it to stop").click()
        page.wait_for_url("**/cancel/asked")
        take("job-asked")
        in_doubt = "SELECT id FROM packhorse.job WHERE state = 'uncertain' LIMIT 1"
        self._camera.go(f"/jobs/{self._airline.wait_for('a job is uncertain', in_doubt)}")
        page.get_by_role("link", name="Say what became of it").click()
        page.wait_for_url("**/resolve?*")
        take("job-resolve")

    def relay(self, hold: int) -> None:
        """Show the relay and what it holds."""
        take = self._camera.take
        take("relay", "/relay")
        take("holds", "/relay/holds")
        take("hold", f"/relay/holds/{hold}")
        self._camera.go("/relay")
        self._page.get_by_role("link", name="Release these 2").click()
        self._why("the topic takes 2 MiB now")
        take("release")

    def groups(self) -> None:
        """Show groups from outside and inside, and a pause."""
        take, page = self._camera.take, self._page
        self._airline.wait_for_rest()
        take("groups", "/groups")
        take("group", f"/groups/{GROUP}")
        take("parked", f"/groups/{GROUP}/parked")
        take("offsets", f"/groups/{GROUP}/offsets?topic={TOPIC}")
        self._camera.go(f"/groups/{GROUP}/pause?topic={TOPIC}&partition=2")
        self._why("its broker is being moved")
        take("pause")
        page.get_by_role("button", name=f"Pause {TOPIC}[2]").click()
        page.wait_for_url("**/paused*")
        expect(page.get_by_role("list", name="How far it is")).not_to_contain_text("not yet", timeout=60_000)
        take("paused")

    def look_around(self) -> None:
        """Show the record, the people, and last the overview, with all that goes on by now."""
        take = self._camera.take
        take("audit", "/audit")
        take("people", "/people")
        self._airline.wait_for_rest()
        for name in ("overview", "overview-dark", "overview-phone"):
            take(name, "/")

    def _why(self, text: str) -> None:
        self._page.get_by_label("Why", exact=True).fill(text)

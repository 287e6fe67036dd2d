"""Carry a redrive of a set through at a terminal: confirm, work on it, and say in the end what is true."""

from dataclasses import dataclass

import typer

from packhorse.console.compose import service_of
from packhorse.console.output import tell, tell_json, terminal
from packhorse.console.redriving.compose import work_in_foreground
from packhorse.console.redriving.records import Progress, RedriveRow, RunState
from packhorse.console.redriving.render import redrive_json, redrive_sheet
from packhorse.console.running.lease import Ending, this_runner
from packhorse.console.service import Service
from packhorse.console.settings import ConsoleSettings
from packhorse.core.acts import checked_why
from packhorse.core.errors import OwnershipLost, UsageError
from packhorse.core.rights import Right
from packhorse.core.text import counted
from packhorse.schemas.asking import check_answerable, confirmed

OK, FAILED, LOST, INTERRUPTED = 0, 1, 5, 130


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """What the person asked for on the command line."""

    redrive_id: int
    why: str
    yes: bool
    detach: bool
    claimed: str | None
    as_json: bool


def run_set(request: Request, settings: ConsoleSettings) -> int:
    """
    Confirm the preview that *request* names and work on it; return the exit code.

    Raises:
        UnknownId: There is no such redrive.
        OwnershipLost: Somebody has confirmed it, or it expired.
        UsageError: --why is empty; --json without --yes.
    """
    check_answerable(as_json=request.as_json, yes=request.yes, act="redrive")
    checked_why(request.why)
    with service_of(settings, claimed=request.claimed) as service:
        row, progress = service.redrives.find(request.redrive_id)
        if row.state is RunState.PREVIEWED and not request.as_json:
            _show(service, row, progress, request.why)
            if not request.yes:
                confirmed(f"redrive {counted(progress.waiting, 'message')}?")
        service.redrives.confirm(request.redrive_id, why=request.why)
    return _worked(request, settings, stand_by=True)


def resume_set(request: Request, settings: ConsoleSettings) -> int:
    """
    Go on with a paused or halted run, or with one whose runner is gone; return the exit code.

    Raises:
        UnknownId: There is no such redrive.
        OwnershipLost: It has ended, or another runner lives and works on it.
        UsageError: It is paused or halted, and --why says nothing.
        Forbidden: The person may not act.
    """
    with service_of(settings, claimed=request.claimed) as service:
        row, _ = service.redrives.find(request.redrive_id)
        if row.state is RunState.RUNNING:
            service.people.me().check(Right.ACT, doing="redrive messages")
        elif row.state in {RunState.PAUSED, RunState.HALTED} and not request.why.strip():
            raise UsageError(f"redrive {row.id} is {row.state}: say with --why why it goes on")
        else:
            service.redrives.resume(request.redrive_id, why=request.why)
    return _worked(request, settings, stand_by=row.state is not RunState.RUNNING)


def _show(service: Service, row: RedriveRow, progress: Progress, why: str) -> None:
    terminal().print(redrive_sheet(row, progress))
    for check in row.checks:
        tell(f"  {check.code}: {'' if check.count is None else f'{check.count} '}{check.said}")
    tell("")
    tell(f"on the record as {service.people.actor()}: {why.strip()}")


def _worked(request: Request, settings: ConsoleSettings, *, stand_by: bool) -> int:
    """Work on the set unless it is left to a server, and say how it stands."""
    ending = None
    if not request.detach:
        ending = work_in_foreground(settings, request.redrive_id, stand_by=stand_by)
    with service_of(settings, claimed=request.claimed) as service:
        row, progress = service.redrives.find(request.redrive_id)
    if request.as_json:
        tell_json(redrive_json(row, progress))
    else:
        terminal().print(redrive_sheet(row, progress))
    return _told(row, progress, ending)


def _told(row: RedriveRow, progress: Progress, ending: Ending | None) -> int:
    """Return the exit code, and say on stderr what to type next where something is to be typed."""
    if ending is None:
        return OK
    if ending is Ending.LEFT:
        if row.state is RunState.RUNNING and row.runner not in {None, this_runner()}:
            _next(f"{row.runner} works on it; see packhorse redrive status {row.id}")
        else:
            _next(f"still {row.state}; go on from any machine: packhorse redrive resume {row.id}")
        return INTERRUPTED
    if row.state is RunState.RUNNING:
        raise OwnershipLost(
            f"redrive {row.id} was taken over by {row.runner}; see packhorse redrive status {row.id}"
        )
    if row.state is RunState.ABORTED:
        return LOST
    if row.state is not RunState.ENDED:
        _next(f"packhorse redrive resume {row.id} goes on, packhorse redrive abort {row.id} ends it")
        return FAILED if row.state is RunState.HALTED else LOST
    return FAILED if progress.bad or progress.left else OK


def _next(text: str) -> None:
    typer.echo(text, err=True)

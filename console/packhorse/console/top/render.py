"""Lay one view out for people, calm while all is well; and as values for programs."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Any

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from packhorse.console.doctor.findings import span
from packhorse.console.output import at, plain, said
from packhorse.console.top.facts import COUNTED
from packhorse.console.top.view import LATE, GroupView, View

UNITS = ((1024**4, "TiB"), (1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))
MOST_WRONG = 12
"""Lines of what is wrong; `packhorse doctor` has the rest."""
WRONG, SIDE = "bold red", "dim"


def screen(view: View, *, every: float | None = None) -> RenderableType:
    """Return *view* for people; *every*: how often it is renewed, in seconds."""
    parts: list[RenderableType] = [_head(view, every), *_wrong(view), Text(""), _flow(view)]
    if len(view.shards) > 1 or any(shard.holds or shard.owner is None for shard in view.shards):
        parts.append(_shards(view))
    parts += (
        [Text(""), _groups(view)]
        if view.groups
        else [Text(""), said("no group works in this database", SIDE)]
    )
    parts += [*_behind(view), *_failing(view), *_paused(view), *_runs(view), *_jobs(view)]
    parts += [Text(""), _foot(view)]
    return Group(*parts)


def as_json(view: View) -> dict[str, Any]:
    """Return *view* for programs, without each partition, which may be many thousands; ages are seconds."""
    return {name: _seconds(getattr(view, name)) for name in view.__slots__ if name != "places"}


def _seconds(value: Any) -> Any:
    match value:
        case timedelta():
            return value.total_seconds()
        case tuple():
            return [_seconds(each) for each in value]
        case _ if hasattr(value, "__dataclass_fields__"):
            return {name: _seconds(getattr(value, name)) for name in value.__slots__}
        case _:
            return value


def _head(view: View, every: float | None) -> Text:
    rest = sum(group.quarantined for group in view.groups)
    if view.wrong:
        well = Text(f"{len(view.wrong)} to look at", style=WRONG)
    elif rest:
        well = Text(f"all flows; {rest:,} in quarantine wait for a person", style="yellow")
    else:
        well = Text("all is well", style="green")
    keys = "" if every is None else f"   every {every:g} s, q leaves"
    return Text.assemble(
        Text("packhorse top  ", style="bold"), well, Text(f"   {at(view.at)}{keys}", style=SIDE)
    )


def _wrong(view: View) -> Iterator[Text]:
    for text in view.wrong[:MOST_WRONG]:
        yield said(f"  ! {text}", "red")
    if len(view.wrong) > MOST_WRONG:
        yield said(f"  ! and {len(view.wrong) - MOST_WRONG} more: packhorse doctor", "red")


def _flow(view: View) -> Text:
    oldest = "nothing waits" if view.oldest is None else f"oldest unpublished {span(view.oldest)}"
    late = view.oldest is not None and view.oldest > LATE
    done = [group.done for group in view.groups if group.done is not None]
    return Text.assemble(
        f"written {rate(view.written)}   published {rate(view.published)}   done {rate(sum(done) if done else None)}   ",
        Text(oldest, style=WRONG if late else ""),
        Text(f"   {view.relays} relays alive", style=SIDE),
    )


def rate(value: float | None) -> str:
    """
    Return messages a second, for people.

    >>> rate(None), rate(0.0), rate(0.34), rate(1234.5)
    ('-', '0/s', '0.3/s', '1,234/s')
    """
    if value is None:
        return "-"
    return f"{value:.1f}/s" if 0 < value < 10 else f"{value:,.0f}/s"


def number(value: int, *, most: int | None = None) -> str:
    """
    Return a count, for people; one that reached *most* is "at least".

    >>> number(1234), number(20_000, most=20_000)
    ('1,234', '20,000+')
    """
    return f"{value:,}" + ("+" if most is not None and value >= most else "")


def size(value: int) -> str:
    """
    Return a number of bytes, for people.

    >>> size(512), size(3 * 1024**3 // 2)
    ('512 B', '1.5 GiB')
    """
    for unit, name in UNITS:
        if value >= unit:
            return f"{value / unit:.1f} {name}"
    return f"{value} B"


def _table(*columns: str) -> Table:
    made = Table(box=None, pad_edge=False, header_style=SIDE, padding=(0, 2, 0, 0))
    for n, column in enumerate(columns):
        made.add_column(column, justify="left" if n == 0 else "right", no_wrap=n > 0, overflow="fold")
    return made


def _shards(view: View) -> Table:
    table = _table("shard", "owner", "published", "oldest", "holds")
    for shard in view.shards:
        table.add_row(
            str(shard.shard),
            said(shard.owner or "nobody", "" if shard.owner or shard.oldest is None else WRONG),
            number(shard.published),
            "-" if shard.oldest is None else span(shard.oldest),
            said(
                f"{shard.holds}" + (f", {shard.people} for a person" if shard.people else ""),
                WRONG if shard.people else "",
            ),
        )
    return table


def _groups(view: View) -> Table:
    table = _table(
        "group",
        "partitions",
        "done",
        "lag",
        "retry",
        "due",
        "parked",
        "behind",
        "quarantine",
        "oldest",
        "alive",
        "version",
    )
    for group in view.groups:
        table.add_row(*_row(group, view))
    return table


def _row(group: GroupView, view: View) -> Iterator[Text]:
    waiting = group.waiting
    yield said(group.group, "bold")
    yield said(number(group.partitions))
    yield said(rate(group.done))
    yield said(
        number(group.lag) if group.lag is not None else group.lag_said, SIDE if group.lag is None else ""
    )
    yield said(number(waiting.retries, most=COUNTED))
    late = group.overdue is not None and group.overdue > LATE
    yield said("-" if group.overdue is None else f"{span(group.overdue)} ago", WRONG if late else "")
    yield said(number(waiting.parked_keys, most=COUNTED))
    yield said(number(waiting.followers, most=COUNTED))
    yield said(number(group.quarantined), "yellow" if group.quarantined else "")
    oldest = waiting.oldest_quarantined
    yield said("-" if oldest is None else span(view.at - oldest))
    yield said(
        f"{group.alive}" + (f" ({group.dead} gone)" if group.dead else ""), WRONG if group.is_left else ""
    )
    yield said(", ".join(group.versions) or "-", "yellow" if len(group.versions) > 1 else "")


def _behind(view: View) -> Iterator[RenderableType]:
    rows = [(group.group, each) for group in view.groups for each in group.behind]
    if rows:
        yield Text("\nfurthest behind", style="bold")
    for name, each in sorted(rows, key=lambda row: -row[1].lag)[:5]:
        late = each.still > LATE
        text = f"  {name}: {each.topic}[{each.partition}], {number(each.lag)} offsets, its watermark moved {span(each.still)} ago"
        yield said(text, "red" if late else "")


def _failing(view: View) -> Iterator[RenderableType]:
    rows = [(group.group, each) for group in view.groups for each in group.failing]
    if rows:
        yield Text("\nin quarantine", style="bold")
    for name, each in rows[:10]:
        yield said(
            f"  {name}: {number(each.messages)} of {each.type or 'no type'}, {each.reason}, the last {span(view.at - each.last_at)} ago"
        )


def _paused(view: View) -> Iterator[RenderableType]:
    keys = [(group.group, group.waiting.paused_keys) for group in view.groups if group.waiting.paused_keys]
    if view.paused or keys:
        yield Text("\npaused", style="bold")
    for each in view.paused:
        why = "" if each.why is None else f": {each.why}"
        yield said(f"  {each.group}: {each.what}, by {each.by} for {span(view.at - each.at)}{why}", "yellow")
    for name, count in keys:
        yield said(
            f"  {name}: {number(count, most=COUNTED)} keys (packhorse processor paused --group {name})",
            "yellow",
        )


def _runs(view: View) -> Iterator[RenderableType]:
    if view.runs:
        yield Text("\nruns", style="bold")
    for run in view.runs:
        part = f" ({run.done / run.total:.0%})" if run.total else ""
        runner = run.runner if run.live and run.runner else "nobody works on it"
        wrong = run.state == "halted" or run.is_left
        text = f"  {run.kind} {run.id}, {run.state}: {number(run.done)} of {number(run.total)}{part}, {runner}, by {run.by}"
        yield said(text, WRONG if wrong else "")


def _jobs(view: View) -> Iterator[RenderableType]:
    if not view.jobs:
        return
    states = {"quarantined": "yellow", "uncertain": WRONG}
    told = [
        Text(f"{number(each.jobs, most=COUNTED)} {each.state}", style=states.get(each.state, ""))
        for each in view.jobs
    ]
    yield Text.assemble(Text("\njobs  ", style="bold"), Text("   ").join(told))


def _foot(view: View) -> Text:
    sizes = "   ".join(
        f"{each.table} {size(each.bytes)}, about {number(each.rows)} rows" for each in view.sizes
    )
    ends = "" if view.ends_said is None else f"   lag: {plain(view.ends_said)}"
    name, took = view.took
    return Text(f"{sizes}   asked in {took * 1000:.0f} ms at most ({name}){ends}", style=SIDE)

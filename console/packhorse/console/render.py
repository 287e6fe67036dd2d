"""Lay answers out for people; the JSON of the same answers stands beside each."""

from collections.abc import Iterator
from typing import Any

from rich.console import Group, RenderableType
from rich.text import Text

from packhorse.console.facts import Act, FailedAttempt, QuarantinedMessage
from packhorse.console.output import at, plain, said, sheet, table
from packhorse.console.quarantine.around.render import around_json, around_parts
from packhorse.console.quarantine.redrive import Preview
from packhorse.console.quarantine.service import Shown
from packhorse.console.truth.groups import GroupStatus, Redrive
from packhorse.console.truth.render import group_json, group_pairs, message_json, message_pairs
from packhorse.console.truth.render_jobs import job_json, job_pairs
from packhorse.console.truth.status import Status
from packhorse.core.text import counted

_REDRIVE_STEPS = (Redrive.ASKED, Redrive.SENT, Redrive.PROVED)


def key_text(key: str | bytes | None, *, show: bool) -> str:
    """
    Return what to show of a key.

    >>> key_text("N14228", show=False), key_text(None, show=False), key_text(b"N14228", show=True)
    ('hidden, 6 bytes; --show-key shows it', 'none', 'N14228')
    """
    if key is None:
        return "none"
    raw = key.encode() if isinstance(key, str) else key
    return plain(raw) if show else f"hidden, {len(raw)} bytes; --show-key shows it"


def status_sheet(status: Status, *, show_key: bool) -> RenderableType:
    """Return *status* for people."""
    row = status.recorded
    pairs: list[tuple[str, object]] = [
        ("message", status.id),
        ("standing", said(status.standing, "bold")),
    ]
    if not status.known:
        return sheet(pairs)
    if status.job is not None and status.around.now is not None:
        pairs += job_pairs(status.job, status.around.now)
    if row is None:
        pairs.append(("recorded", "not in this database"))
    else:
        size = "tombstone" if row.payload_bytes is None else f"{row.payload_bytes} bytes"
        pairs += [
            ("recorded", f"{at(row.created_at)}, aggregate type {row.aggregatetype}, {size}"),
            ("type", f"{row.type}, schema version {row.schema_version}"),
            ("key", key_text(row.key, show=show_key)),
        ]
        named = ("correlation_id", "causation_id", "origin", "tenant", "traceparent", "expires_at")
        pairs += [
            (name.replace("_", " "), value) for name in named if (value := getattr(row, name)) is not None
        ]
    place = status.place
    pairs += [
        ("published", f"{status.published}: {status.published_why}"),
        ("on topic", "not known" if place is None else f"{place.topic}/{place.partition}/{place.offset}"),
        ("search", status.search.said),
        (
            "records read",
            str(sum(group.inbox.deliveries for group in status.groups if group.inbox is not None)),
        ),
    ]
    pairs[2:2] = _kept_back(status)
    pairs += message_pairs(status)
    parts: list[RenderableType] = [sheet(pairs)]
    parts += [_group(status, group) for group in status.groups]
    parts += acts_table(status.acts)
    return Group(*parts)


def _kept_back(status: Status) -> list[tuple[str, object]]:
    """Return why the relay keeps the row back or never sends it; nothing when it does not."""
    pairs: list[tuple[str, object]] = []
    if (hold := status.hold) is not None:
        pairs += [
            ("held", f"hold {hold.id} of its {hold.scope}, since {at(hold.since)}: {hold.reason}"),
            ("next", hold.next),
        ]
    if (gone := status.discard) is not None:
        pairs.append(
            (
                "discarded",
                f"{at(gone.at)} by {gone.actor}, {gone.way}: {gone.why or 'no reason given'}",
            )
        )
    return pairs


def status_json(status: Status, *, show_key: bool) -> dict[str, Any]:
    """Return *status* for programs; the key only if *show_key*."""
    row = status.recorded
    recorded = None
    if row is not None:
        names = (name for name in row.__slots__ if name not in {"id", "key", "published", "relay_ran"})
        recorded = {name: getattr(row, name) for name in names} | _key_json(row.key, show_key=show_key)
    return {
        "id": status.id,
        "known": status.known,
        "standing": status.standing,
        "recorded": recorded,
        "published": status.published,
        "published_why": status.published_why,
        "place": status.place,
        "hold": status.hold,
        "discard": status.discard,
        "search": status.search.said,
        "groups": [
            _group_json(group, show_key=show_key) | group_json(status, group) for group in status.groups
        ],
        "acts": status.acts,
        "forgotten": status.forgotten,
        "job": None if status.job is None else job_json(status.job, show_key=show_key),
        **message_json(status),
    }


def shown_sheet(shown: Shown, *, show_key: bool) -> RenderableType:
    """Return one quarantined message for people."""
    parts: list[RenderableType] = [
        sheet(_message_pairs(shown.message, show_key=show_key)),
        Text("\nheaders", style="bold"),
        sheet(((plain(name), value) for name, value in shown.headers), indent=2),
        *_attempts(shown.attempts),
        *acts_table(shown.acts),
        *([] if shown.around is None else around_parts(shown.around)),
        Text("\npayload", style="bold"),
    ]
    if shown.payload is None:
        parts.append(said(f"  {shown.payload_said}"))
    else:
        parts.append(sheet(leaves(shown.payload, ""), indent=2))
    return Group(*parts)


def shown_json(shown: Shown, *, show_key: bool) -> dict[str, Any]:
    """Return one quarantined message for programs."""
    return {
        **quarantined_json(shown.message, show_key=show_key),
        "headers": [[name, value] for name, value in shown.headers],
        "failed_attempts": shown.attempts,
        "acts": shown.acts,
        "payload": shown.payload,
        "payload_said": shown.payload_said,
        "unmasked": shown.unmasked,
        "around": None if shown.around is None else around_json(shown.around),
    }


def preview_sheet(preview: Preview, *, show_key: bool) -> RenderableType:
    """Return what a redrive or a discard would do for people."""
    steps = [Text(f"  {n}. {plain(step)}") for n, step in enumerate(preview.steps, 1)]
    warnings = [said(f"  ! {warning}", "yellow") for warning in preview.warnings]
    return Group(
        sheet(_message_pairs(preview.message, show_key=show_key)),
        Text(f"\n{preview.act} does this", style="bold"),
        *steps,
        *warnings,
    )


def preview_json(preview: Preview) -> dict[str, Any]:
    """Return what a redrive would do for programs."""
    return {"order": preview.order, "steps": preview.steps, "warnings": preview.warnings}


def quarantined_json(message: QuarantinedMessage, *, show_key: bool) -> dict[str, Any]:
    """Return *message* for programs; the key only if *show_key*."""
    values = {name: getattr(message, name) for name in message.__slots__ if name != "key"}
    return values | _key_json(message.key, show_key=show_key)


def _key_json(key: str | bytes | None, *, show_key: bool) -> dict[str, Any]:
    return {"has_key": key is not None} | ({"key": key} if show_key else {})


def _message_pairs(message: QuarantinedMessage, *, show_key: bool) -> list[tuple[str, object]]:
    size = "tombstone" if message.payload_bytes is None else f"{message.payload_bytes} bytes"
    copied = message.copy_offset is not None
    copy = (
        f"partition {message.copy_partition}, offset {message.copy_offset}" if copied else "not confirmed yet"
    )
    return [
        ("message", message.id),
        ("group", message.group),
        ("topic", f"{message.topic}/{message.partition}/{message.offset}"),
        ("type", message.type),
        ("tenant", message.tenant),
        ("key", key_text(message.key, show=show_key)),
        ("payload", size),
        ("state", message.state),
        ("reason", said(message.reason, "bold")),
        ("error", message.error),
        ("attempts", message.attempts),
        ("first failed", message.first_failed_at),
        ("quarantined", message.quarantined_at),
        ("copy", copy),
        ("redrives", message.redrives),
    ]


def _group(status: Status, group: GroupStatus) -> RenderableType:
    pairs: list[tuple[str, object]] = [("standing", said(group.standing, "bold"))]
    inbox = group.inbox
    if inbox is not None:
        pairs += [
            ("stands at", f"{inbox.topic}/{inbox.partition}/{inbox.offset}"),
            ("was read", read_line(inbox.deliveries)),
            ("outcome", f"{inbox.outcome} since {at(inbox.changed_at)}"),
            ("attempt", inbox.attempt),
        ]
        named = ("reason", "error", "due_at")
        pairs += [
            (name.replace("_", " "), value) for name in named if (value := getattr(inbox, name)) is not None
        ]
    held = group.quarantined
    if held is not None:
        copied = (
            "copy not confirmed yet" if held.copy_offset is None else f"copy at offset {held.copy_offset}"
        )
        pairs.append(("quarantine", f"{held.state}, since {at(held.quarantined_at)}, {copied}"))
    if group.redrive is not Redrive.NONE:
        pairs.append(("redrive", redrive_line(group.redrive)))
    pairs += group_pairs(status, group)
    heading = Text(f"\ngroup {plain(group.group)}, topic {plain(group.topic)}", style="bold")
    return Group(heading, sheet(pairs, indent=2), *_attempts(group.attempts))


def read_line(records: int) -> str:
    """
    Return how many records of a message were read: copies in tiers and wake-ups of its key bear its id, and count.

    >>> read_line(1)
    'once'
    """
    if records == 1:
        return "once"
    return f"{counted(records, 'time')}: where it stands, there once more, or as copies in tiers and wake-ups of its key"


def redrive_line(redrive: Redrive) -> str:
    """
    Return how far a redrive has come.

    >>> redrive_line(Redrive.SENT)
    'asked → sent → (not proved yet)'
    """
    reached = _REDRIVE_STEPS.index(redrive) if redrive in _REDRIVE_STEPS else -1
    return " → ".join(
        step.value if n <= reached else f"(not {step.value} yet)"
        for n, step in enumerate(_REDRIVE_STEPS)
        if n <= reached + 1
    )


def _group_json(group: GroupStatus, *, show_key: bool) -> dict[str, Any]:
    held = group.quarantined
    return {
        "group": group.group,
        "topic": group.topic,
        "standing": group.standing,
        "redrive": group.redrive,
        "inbox": group.inbox,
        "failed_attempts": group.attempts,
        "quarantined": None if held is None else quarantined_json(held, show_key=show_key),
    }


def _attempts(attempts: tuple[FailedAttempt, ...]) -> list[RenderableType]:
    if not attempts:
        return []
    rows = [(f"  {row.attempt}", row.failed_at, row.reason, row.error, row.due_at) for row in attempts]
    return [Text("\n  failed attempts"), table(("  attempt", "failed", "reason", "error", "next due"), rows)]


def acts_table(acts: tuple[Act, ...]) -> list[RenderableType]:
    """Return what people did, for people; nothing where nobody did anything."""
    if not acts:
        return []
    rows = [(f"  {at(act.at)}", act.act, act.actor, act.group, act.why) for act in acts]
    return [Text("\nacts", style="bold"), table(("  at", "act", "actor", "group", "why"), rows)]


def leaves(value: object, path: str) -> Iterator[tuple[str, object]]:
    """Yield the places in *value* that hold a plain value, each with its path below *path*."""
    if isinstance(value, dict) and value:
        for name, item in value.items():
            yield from leaves(item, f"{path}.{plain(name)}" if path else plain(name))
    elif isinstance(value, list) and value:
        for number, item in enumerate(value):
            yield from leaves(item, f"{path}[{number}]")
    else:
        yield path, "null" if value is None else value

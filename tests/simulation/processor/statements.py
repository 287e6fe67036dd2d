"""What each statement of the store does, in the simulated database; by its name among the product's `Queries`."""

from collections.abc import Callable
from datetime import datetime
from typing import Any

from tests.simulation.processor.database import Row, Session
from tests.simulation.processor.hub import wall

from packhorse.processor.storing.parking import LEASE

Rows = list[tuple[Any, ...]]
Done = tuple[Rows, int]
OPEN = {"retry", "parked", "quarantine", "uncertain"}
_SELECTED = -1


def look_up(c: Session, v: Row) -> Done:
    mark = c.see("watermark", (v["topic_id"], v["partition"]))
    if mark is None:
        return [], 0
    now, source = c.hub.now, v["source"]
    known = mark["offset"], mark["incarnation"] == c.database.incarnation, wall(now)
    parked = any(key[0] == source for key, _ in c.scan("key"))
    rows: Rows = []
    for one in dict.fromkeys(v["ids"]):
        inbox = c.see("inbox", (source, one))
        if inbox is not None:
            rows.append((*known, one, *_known(c, source, one, inbox), parked))
    return rows or [(*known, *[None] * 10, parked)], 0


def look_up_one(c: Session, v: Row) -> Done:
    return look_up(c, v)


def _known(c: Session, source: str, one: Any, inbox: Row) -> tuple[Any, ...]:
    now = c.hub.now
    stopped, again = c.see("quarantined", (source, one)), None
    if inbox["outcome"] == "retry":
        again = c.see("retry", (source, one))
        if again is not None and again["attempt"] != inbox["attempt"]:
            again = None
    state = None if stopped is None else stopped["state"]
    due = 0.0 if inbox["due_at"] is None else inbox["due_at"] - now
    copied = True
    if inbox["outcome"] == "retry":
        copied = again is not None and again["sent_at"] is not None
        if again is None:
            copied = state != "redriven" or stopped["redrive_sent_at"] is not None or due > 0  # type: ignore[index]
    elif inbox["outcome"] == "quarantine" and stopped is not None:
        copied = stopped["copy_offset"] is not None or state != "quarantined"
    first = inbox["first_failed_at"]
    tier = again["tier"] if again is not None else "0s" if state == "redriven" else None
    return (
        inbox["outcome"],
        inbox["attempt"],
        due,
        0.0 if first is None else now - first,
        state,
        copied,
        again["spent"] if again is not None else 0.0,
        inbox["digest"],
        tier,
    )


def parked_keys(c: Session, v: Row) -> Done:
    found = []
    for number in v["numbers"]:
        for (source, hashed), row in c.scan("key"):
            if source == v["source"] and _number(hashed) == number:
                found.append((hashed, None if row["paused"] else row["head"]))
    return found, _SELECTED


def _number(hashed: str) -> int:
    number = int(hashed[:16], 16)
    return number - (1 << 64) if number >> 63 else number


def insert_results(c: Session, v: Row) -> Done:
    if c.xid != v["xid"]:
        return [], 0
    each = list(_each(v, "ids", "outcomes", "attempts", "delays", "reasons", "digests"))
    for one, outcome, attempt, delay, reason, digest in each:
        c.insert(
            "inbox",
            (v["source"], one),
            {
                "outcome": outcome,
                "attempt": attempt,
                "due_at": c.hub.now + delay if outcome == "retry" else None,
                "first_failed_at": c.hub.now if outcome in {"retry", "quarantine"} else None,
                "reason": reason,
                "digest": digest,
                "deliveries": 1,
            },
        )
    return [], len(each)


def insert_done(c: Session, v: Row) -> Done:
    if c.xid != v["xid"]:
        return [], 0
    each = list(_each(v, "ids", "digests"))
    for one, digest in each:
        row = {"outcome": "done", "attempt": 1, "due_at": None, "first_failed_at": None, "reason": None}
        c.insert("inbox", (v["source"], one), {**row, "digest": digest, "deliveries": 1})
    return [], len(each)


def update_results(c: Session, v: Row) -> Done:
    if c.xid != v["xid"]:
        return [], 0
    touched = 0
    columns = ("ids", "outcomes", "attempts", "more", "delays", "reasons", "digests", "was", "expected")
    for one, outcome, attempt, more, delay, reason, digest, was, expected in _each(v, *columns):
        key = v["source"], one
        row = c.seize("inbox", key, lambda r: (r["outcome"], r["attempt"]) == (was, expected))  # noqa: B023
        if row is None:
            continue
        first = row["first_failed_at"]
        if first is None and outcome in {"retry", "quarantine"}:
            first = c.hub.now
        due = c.hub.now + delay if outcome == "retry" else None
        changed = {"outcome": outcome, "attempt": attempt, "due_at": due, "first_failed_at": first}
        c.put(
            "inbox",
            key,
            {
                **row,
                **changed,
                "reason": reason,
                "digest": row["digest"] or digest,
                "deliveries": row["deliveries"] + more,
            },
        )
        touched += 1
    return [], touched


def insert_failed(c: Session, v: Row) -> Done:
    for one, attempt, reason in _each(v, "ids", "attempts", "reasons"):
        key = v["source"], one, attempt
        if c.newest("failed", key) is None:
            c.put("failed", key, {"reason": reason})
    return [], _SELECTED


def _kept(v: Row) -> list[tuple[Any, Row]]:
    """Return messages as the tables keep them, by id."""
    columns = (
        "ids",
        "topic_ids",
        "partitions",
        "offsets",
        "epochs",
        "timestamps",
        "keys",
        "payloads",
        "headers",
        "hashes",
    )
    names = (
        "topic_id",
        "partition",
        "offset",
        "leader_epoch",
        "timestamp_ms",
        "key",
        "payload",
        "headers",
        "key_hash",
    )
    return [(one, dict(zip(names, more, strict=True))) for one, *more in _each(v, *columns)]


def upsert_quarantined(c: Session, v: Row) -> Done:
    for (one, kept), reason, error, attempts in zip(
        _kept(v), v["reasons"], v["errors"], v["attempts"], strict=True
    ):
        key = v["source"], one
        inbox = c.see("inbox", key)
        first = inbox["first_failed_at"] if inbox is not None and inbox["first_failed_at"] else c.hub.now
        new = {"state": "quarantined", "reason": reason, "error": error, "attempts": attempts}
        new |= {"key_hash": kept["key_hash"], "quarantined_at": c.hub.now}
        new |= {"copy_offset": None, "redrive_sent_at": None}
        old = c.newest("quarantined", key)
        c.put("quarantined", key, {**(old or {**kept, "first_failed_at": first}), **new})
    return [], _SELECTED


def upsert_retry(c: Session, v: Row) -> Done:
    columns = (v["reasons"], v["errors"], v["attempts"], v["tiers"], v["spent"])
    for (one, kept), reason, error, attempt, tier, spent in zip(_kept(v), *columns, strict=True):
        key = v["source"], one
        inbox = c.see("inbox", key)
        if inbox is None:
            continue
        old = c.newest("retry", key)
        new = {"attempt": attempt, "tier": tier, "due_at": inbox["due_at"], "spent": spent, "reason": reason}
        new |= {"key_hash": kept["key_hash"], "error": error, "sent_at": None, "sent_partition": None}
        new |= {"sent_offset": None, "resend_at": None, "resends": 0}
        c.put("retry", key, {**(old or {**kept, "first_failed_at": inbox["first_failed_at"]}), **new})
    return [], _SELECTED


def delete_retry(c: Session, v: Row) -> Done:
    return _delete(c, "retry", v)


def delete_parked(c: Session, v: Row) -> Done:
    return _delete(c, "parked", v)


def _delete(c: Session, table: str, v: Row) -> Done:
    touched = 0
    for one in v["ids"]:
        key = v["source"], one
        if c.seize(table, key) is not None:
            c.put(table, key, None)
            touched += 1
    return [], touched


def insert_parked(c: Session, v: Row) -> Done:
    for one, kept in _kept(v):
        age = v["topic_age"]
        c.insert("parked", (v["source"], one), {**kept, "topic_age": 0 if age is None else age})
    return [], _SELECTED


def lock_keys(c: Session, v: Row) -> Done:
    found: Rows = []
    for hashed in sorted(v["keys"]):
        row = c.seize("key", (v["source"], hashed))
        if row is not None:
            found.append((hashed, row["head"]))
    return found, _SELECTED


def park_keys(c: Session, v: Row) -> Done:
    touched = 0
    for hashed, key, partition, head in sorted(_each(v, "hashes", "keys", "partitions", "heads")):
        if c.newest("key", (v["source"], hashed)) is None:
            row = {"key": key, "partition": partition, "head": head, "token": int(c.hub.now * 1e6)}
            c.put("key", (v["source"], hashed), {**_FRESH, **row})
            touched += 1
    return [], touched


_FRESH: Row = {"head": None, "lease": None, "paused": False, "wake_at": None}


def unhead_keys(c: Session, v: Row) -> Done:
    for hashed in v["keys"]:
        key = v["source"], hashed
        row = c.seize("key", key, lambda r: r["head"] in v["heads"])
        if row is not None:
            c.put("key", key, {**row, "head": None, "wake_at": c.hub.now + 10})
    return [], _SELECTED


def keep_claim(c: Session, v: Row) -> Done:
    key = v["source"], v["key"]
    row = c.seize("key", key, lambda r: r["token"] == v["token"])
    if row is None:
        return [], 0
    lease = None if v["ends"] else c.hub.now + v["lease"]
    c.put("key", key, {**row, "head": v["head"], "lease": lease, "wake_at": lease and lease + 5})
    return [], 1


def lock_releasable(c: Session, v: Row) -> Done:
    found: Rows = []
    for hashed, held in sorted(_each(v, "keys", "tokens")):
        if c.seize("key", (v["source"], hashed), lambda r: not r["paused"] and _free(c, r, held)):  # noqa: B023
            found.append((hashed,))
    return found, _SELECTED


def claim_keys(c: Session, v: Row) -> Done:
    found: Rows = []
    for hashed in sorted(v["keys"]):
        key = v["source"], hashed
        row = c.seize("key", key, lambda r: _left(c, v["source"], r))
        if row is not None:
            token, lease = row["token"] + 1, c.hub.now + v["lease"]
            wake_at = max(row["wake_at"] or 0, lease + 5)
            c.put("key", key, {**row, "token": token, "lease": lease, "wake_at": wake_at})
            found.append((hashed, token))
    return found, len(found)


def lock_claimed(c: Session, v: Row) -> Done:
    found: Rows = []
    for hashed, token in sorted(_each(v, "keys", "tokens")):
        row = c.seize("key", (v["source"], hashed), lambda r: r["token"] == token)  # noqa: B023
        if row is not None:
            found.append((hashed, row["paused"]))
    return found, len(found)


def first_followers(c: Session, v: Row) -> Done:
    found: Rows = []
    for hashed in v["keys"]:
        rows, _ = followers(c, {**v, "key": hashed})
        found += [(*row, hashed) for row in rows[:1]]
    return found, len(found)


def leave_keys(c: Session, v: Row) -> Done:
    for source, hashed, token in sorted(_each(v, "topics", "keys", "tokens")):
        leave_key(c, {"source": source, "key": hashed, "token": token})
    return [], _SELECTED


def release_keys(c: Session, v: Row) -> Done:
    found: Rows = []
    for hashed in sorted(v["keys"]):
        key = v["source"], hashed
        row = c.see("key", key)
        if row is None:
            continue
        mine, finished, waiting = hashed in v["locked"], _finished(c, v["source"], row), _followed(c, key)
        busy = max(0.0, row["lease"] - c.hub.now) if row["lease"] is not None else 0.0
        if mine and finished and not waiting and c.seize("key", key) is not None:
            c.put("key", key, None)
        found.append((hashed, row["head"], row["paused"], mine, finished, busy, waiting))
    return found, _SELECTED


def claim_key(c: Session, v: Row) -> Done:
    key = v["source"], v["key"]

    def may(row: Row) -> bool:
        return not row["paused"] and _free(c, row, v["held"]) and _finished(c, v["source"], row)

    row = c.seize("key", key, may)
    if row is None:
        return [], 0
    token, lease = row["token"] + 1, c.hub.now + v["lease"]
    c.put("key", key, {**row, "token": token, "lease": lease, "wake_at": lease + 5})
    return [(token,)], 1


def key_standing(c: Session, v: Row) -> Done:
    row = c.see("key", (v["source"], v["key"]))
    if row is None:
        return [], 0
    busy = max(0.0, row["lease"] - c.hub.now) if row["lease"] is not None else 0.0
    return [(row["head"], row["paused"], _finished(c, v["source"], row), busy)], 1


def followers(c: Session, v: Row) -> Done:
    waiting = [
        (row["topic_age"], row["offset"], one, row)
        for (source, one), row in c.scan("parked")
        if source == v["source"] and row["key_hash"] == v["key"]
    ]
    found: Rows = []
    for _, _, one, row in sorted(waiting, key=lambda each: each[:2])[:100]:
        inbox = c.see("inbox", (v["source"], one))
        stopped = c.see("quarantined", (v["source"], one))
        kept = tuple(
            row[name] for name in ("topic_id", "partition", "offset", "leader_epoch", "timestamp_ms")
        )
        known = (None, None, 0.0, None, None)
        if inbox is not None:
            state = None if stopped is None else stopped["state"]
            known = (inbox["outcome"], inbox["attempt"], 0.0, state, inbox["digest"])
        found.append((one, *kept, row["key"], row["payload"], row["headers"], *known, wall(c.hub.now)))
    return found, len(found)


def leave_key(c: Session, v: Row) -> Done:
    key = v["source"], v["key"]
    row = c.seize("key", key, lambda r: r["token"] == v["token"] and r["lease"] is not None)
    if row is not None:
        c.put("key", key, {**row, "lease": None, "wake_at": c.hub.now + 1})
    return [], _SELECTED


def renew_claims(c: Session, v: Row) -> Done:
    found: Rows = []
    for source, hashed, token in sorted(_each(v, "topics", "keys", "tokens")):
        key, soon = (source, hashed), c.hub.now + v["lease"] * 0.667
        if c.is_locked("key", key):
            continue
        ours = lambda r: r["token"] == token and r["lease"] is not None and r["lease"] < soon  # noqa: B023, E731
        row = c.seize("key", key, ours)
        if row is not None:
            lease = c.hub.now + v["lease"]
            c.put("key", key, {**row, "lease": lease, "wake_at": max(row["wake_at"] or 0, lease + 5)})
            found.append((source, hashed, token))
    return found, len(found)


def overdue_retries(c: Session, v: Row) -> Done:
    now, grace, found = c.hub.now, v["grace"], []
    for (source, one), row in c.scan("retry"):
        if source not in v["topics"] or row["due_at"] is None or row["due_at"] >= now - grace:
            continue
        if row["resend_at"] is not None and row["resend_at"] > now:
            continue
        if row["sent_at"] is not None and not (
            row["due_at"] < now - 3 * grace
            and (row["due_at"] < now - 3600 or not _tier_behind(c, source, row, v["group"]))
        ):
            continue
        if c.is_locked("retry", (source, one)):
            continue
        found.append((row["due_at"], source, one))
    rows: Rows = []
    for _, source, one in sorted(found)[: v["most"]]:
        again = c.newest("retry", (source, one))
        assert again is not None
        wait = min(3600, 60 * 2 ** min(again["resends"], 10))
        new = {**again, "resends": again["resends"] + 1, "resend_at": now + wait}
        c.put("retry", (source, one), new)
        rows.append(_to_copy(one, source, new, new["attempt"], new["tier"], new["due_at"]))
    return rows, len(rows)


def _tier_behind(c: Session, source: str, row: Row, group: str) -> bool:
    topic = f"{source}.{group}.retry.{row['tier']}"
    return any(
        mark["topic"] == topic and key[1] == row["sent_partition"] and mark["offset"] <= row["sent_offset"]
        for key, mark in c.scan("watermark")
    )


def _to_copy(one: Any, source: str, row: Row, attempt: int, *more: Any) -> tuple[Any, ...]:
    names = ("topic_id", "partition", "offset", "key", "payload", "headers", "reason", "error")
    tier, due = (*more, None, None)[:2]
    due = due if due is None or isinstance(due, datetime) else wall(due)
    return (one, source, *(row[name] for name in names), attempt, wall(row["first_failed_at"]), tier, due)


def due_wakes(c: Session, v: Row) -> Done:
    now, found = c.hub.now, []
    for (source, hashed), row in c.scan("key"):
        due = row["wake_at"] is not None and row["wake_at"] <= now and source in v["topics"]
        if not due or c.is_locked("key", (source, hashed)) or not _left(c, source, row):
            continue
        found.append((row["wake_at"], source, hashed))
    rows: Rows = []
    for _, source, hashed in sorted(found)[: v["most"]]:
        woken = c.newest("key", (source, hashed))
        if woken is None:
            continue
        c.put("key", (source, hashed), {**woken, "wake_at": now + 60})
        key = woken["key"]
        if key is None:
            key = next(
                (p["key"] for (s, _), p in c.scan("parked") if s == source and p["key_hash"] == hashed), None
            )
        rows.append((source, hashed, key, woken["partition"], woken["head"]))
    return rows, len(rows)


def _left(c: Session, source: str, row: Row) -> bool:
    return not row["paused"] and _free(c, row, -1) and _finished(c, source, row)


def sweep_keys(c: Session, v: Row) -> Done:
    after = v["after_topic"], v["after_key"]
    portion = sorted((key, row) for key, row in c.scan("key") if key > after)
    for key, row in portion:
        if row["wake_at"] is None and _left(c, key[0], row):
            again = c.seize("key", key, lambda r: r["wake_at"] is None)
            if again is not None:
                c.put("key", key, {**again, "wake_at": c.hub.now})
    return [], _SELECTED


def parked_standing(c: Session, v: Row) -> Done:
    del v
    found: dict[Any, list[int]] = {}
    for (source, _), row in c.scan("parked"):
        standing = found.setdefault((source, row["partition"]), [0, 0])
        standing[0] += 1
        standing[1] += len(row["payload"] or b"")
    return [(*place, *standing) for place, standing in sorted(found.items())], len(found)


def pause_key(c: Session, v: Row) -> Done:
    key = v["source"], v["hash"]
    row = c.newest("key", key)
    if row is None:
        row = {**_FRESH, "key": v["key"], "partition": v["partition"], "token": int(c.hub.now * 1e6)}
    if row["paused"]:
        return [], 0
    c.put("key", key, {**row, "paused": True, "key": row["key"] or v["key"]})
    return [], 1


def resume_key(c: Session, v: Row) -> Done:
    key = v["source"], v["hash"]
    row = c.seize("key", key, lambda r: bool(r["paused"]))
    if row is None:
        return [], 0
    c.put("key", key, {**row, "paused": False, "wake_at": c.hub.now})
    return [], 1


def count_deliveries(c: Session, v: Row) -> Done:
    ids = list(v["ids"])
    for one in sorted(set(ids)):
        row = c.seize("inbox", (v["source"], one))
        if row is not None:
            c.put("inbox", (v["source"], one), {**row, "deliveries": row["deliveries"] + ids.count(one)})
    return [], _SELECTED


def uncopied(c: Session, v: Row) -> Done:
    source, rows = v["source"], []
    for one in dict.fromkeys(v["ids"]):
        again, stopped = c.see("retry", (source, one)), c.see("quarantined", (source, one))
        inbox = c.see("inbox", (source, one))
        if again is not None and again["sent_at"] is None:
            rows.append(_to_copy(one, source, again, again["attempt"], again["tier"], again["due_at"]))
        if stopped is None or inbox is None:
            continue
        if stopped["state"] == "quarantined" and stopped["copy_offset"] is None:
            rows.append(_to_copy(one, source, stopped, stopped["attempts"]))
        if (
            stopped["state"] == "redriven"
            and stopped["redrive_sent_at"] is None
            and again is None
            and inbox["outcome"] == "retry"
            and inbox["due_at"] <= c.hub.now
        ):
            rows.append(_to_copy(one, source, stopped, inbox["attempt"], "0s", inbox["due_at"]))
    return sorted(rows, key=lambda row: row[3:5]), len(rows)


def confirm_copies(c: Session, v: Row) -> Done:
    for one, offset, attempt in _each(v, "ids", "offsets", "attempts"):
        key = v["source"], one
        row = c.seize("quarantined", key, lambda r: (r["state"], r["attempts"]) == ("quarantined", attempt))  # noqa: B023
        if row is not None:
            c.put("quarantined", key, {**row, "copy_offset": offset})
    return [], _SELECTED


def confirm_retries(c: Session, v: Row) -> Done:
    for one, partition, offset, attempt in _each(v, "ids", "partitions", "offsets", "attempts"):
        key = v["source"], one
        inbox = c.see("inbox", key)
        if inbox is not None and (inbox["outcome"], inbox["attempt"]) == ("retry", attempt):
            row = c.seize("quarantined", key, lambda r: r["state"] == "redriven")
            if row is not None:
                c.put("quarantined", key, {**row, "redrive_sent_at": c.hub.now})
        again = c.seize("retry", key, lambda r: r["attempt"] == attempt)  # noqa: B023
        if again is not None:
            where = {"sent_at": c.hub.now, "sent_partition": partition, "sent_offset": offset}
            c.put("retry", key, {**again, **where})
    return [], _SELECTED


def due_redrives(c: Session, v: Row) -> Done:
    return _redrives(c, v, lambda sent: sent is None)


def lost_redrives(c: Session, v: Row) -> Done:
    return _redrives(c, v, lambda sent: sent is not None and sent < c.hub.now - 300)


def _redrives(c: Session, v: Row, wanted: Callable[[float | None], bool]) -> Done:
    rows = []
    for (source, one), row in c.scan("quarantined"):
        inbox = c.see("inbox", (source, one))
        if row["state"] != "redriven" or source not in v["topics"] or inbox is None:
            continue
        if inbox["outcome"] != "retry" or inbox["due_at"] > c.hub.now or not wanted(row["redrive_sent_at"]):
            continue
        if c.see("retry", (source, one)) is not None or c.is_locked("quarantined", (source, one)):
            continue
        rows.append((source, one, row, inbox))
    return _portion(c, v, rows, lambda one, source, row, inbox: (inbox["attempt"], "0s", inbox["due_at"]))


def late_copies(c: Session, v: Row) -> Done:
    rows = []
    for (source, one), row in c.scan("quarantined"):
        late = row["copy_offset"] is None and row["quarantined_at"] < c.hub.now - 30
        if row["state"] != "quarantined" or source not in v["topics"] or not late:
            continue
        if not c.is_locked("quarantined", (source, one)):
            rows.append((source, one, row, None))
    found, touched = _portion(c, v, rows, lambda one, source, row, inbox: (row["attempts"],))
    return [row[:12] for row in found], touched


def _portion(c: Session, v: Row, rows: list[Any], more: Callable[..., tuple[Any, ...]]) -> Done:
    """Lock and return the rows that begin behind the last portion, no more than one portion has."""
    after = v["after_topic"], v["after_partition"], v["after_offset"], v["after_id"]
    keyed = [((source, row["partition"], row["offset"], one), row, inbox) for source, one, row, inbox in rows]
    found: Rows = []
    for (source, _, _, one), row, inbox in sorted(keyed, key=lambda each: each[0]):
        if (source, row["partition"], row["offset"], one) <= after or len(found) == v["most"]:
            continue
        c.newest("quarantined", (source, one))
        found.append(_to_copy(one, source, row, *more(one, source, row, inbox)))
    return found, len(found)


def which_server(c: Session, v: Row) -> Done:
    del v
    return [(str(c.database.incarnation),)], 1


def move_watermarks(c: Session, v: Row) -> Done:
    moved: Rows = []
    columns = ("topic_ids", "partitions", "olds", "news", "epochs")
    for topic_id, partition, old, new, epoch in sorted(_each(v, *columns), key=lambda each: each[:2]):
        key, here = (topic_id, partition), c.database.incarnation
        row = c.seize("watermark", key, lambda r: (r["offset"], r["incarnation"]) == (old, here))  # noqa: B023
        if row is not None:
            c.put("watermark", key, {**row, "offset": new, "epoch": epoch})
            moved.append(key)
            begun = [one for one, _ in c.scan("started") if one[:2] == key and one[2] < new]
            clear_starts(
                c, {"topic_id": topic_id, "partition": partition, "offsets": [one[2] for one in begun]}
            )
    return moved, len(moved)


def read_watermark(c: Session, v: Row) -> Done:
    row = c.see("watermark", (v["topic_id"], v["partition"]))
    others = {
        key for key, mark in c.scan("watermark") if mark["topic"] == v["topic"] and key[0] != v["topic_id"]
    }
    ages = len({key[0] for key in others})
    if row is None:
        return [(None, None, None, len(others), ages)], 1
    same = row["incarnation"] == c.database.incarnation
    return [(row["offset"], row["epoch"], same, len(others), ages)], 1


def first_watermark(c: Session, v: Row) -> Done:
    key = v["topic_id"], v["partition"]
    if c.newest("watermark", key) is not None:
        return [], 0
    row = {"topic": v["topic"], "offset": v["new"], "epoch": None, "incarnation": c.database.incarnation}
    c.put("watermark", key, row)
    return [], 1


def adopt_watermark(c: Session, v: Row) -> Done:
    key = v["topic_id"], v["partition"]
    row = c.seize("watermark", key, lambda r: r["offset"] == v["old"])
    if row is None:
        return [], 0
    epoch = row["epoch"] if v["new"] == row["offset"] else None
    c.put(
        "watermark", key, {**row, "offset": v["new"], "epoch": epoch, "incarnation": c.database.incarnation}
    )
    return [], 1


def take_in_hand(c: Session, v: Row) -> Done:
    c.newest("in_hand", v["lane"])
    c.put("in_hand", v["lane"], {**v, "at": c.hub.now})
    return [], 1


def look_in_hands(c: Session, v: Row) -> Done:
    spots = set(zip(v["topic_ids"], v["partitions"], strict=True))
    rows = [
        (lane, r["topic_id"], r["partition"], r["offsets"], r["alone"], r["member"], c.hub.now - r["at"])
        for lane, r in c.scan("in_hand")
        if (r["topic_id"], r["partition"]) in spots
    ]
    return rows, len(rows)


def mark_start(c: Session, v: Row) -> Done:
    key = v["topic_id"], v["partition"], v["offset"]
    row = c.newest("started", key)
    starts = 1 if row is None else row["starts"] + (0 if v["lived"] else 1)
    c.put("started", key, {"starts": starts})
    return [(starts,)], 1


def read_starts(c: Session, v: Row) -> Done:
    rows: Rows = []
    for offset in v["offsets"]:
        row = c.see("started", (v["topic_id"], v["partition"], offset))
        if row is not None:
            rows.append((offset, row["starts"]))
    return rows, len(rows)


def clear_starts(c: Session, v: Row) -> Done:
    for offset in v["offsets"]:
        key = v["topic_id"], v["partition"], offset
        if c.seize("started", key) is not None:
            c.put("started", key, None)
    return [], _SELECTED


def _each(v: Row, *columns: str) -> Any:
    return zip(*(v[column] for column in columns), strict=True)


def _finished(c: Session, source: str, row: Row) -> bool:
    if row["head"] is None:
        return True
    inbox = c.see("inbox", (source, row["head"]))
    return inbox is None or inbox["outcome"] not in OPEN


def _free(c: Session, row: Row, held: int) -> bool:
    return row["lease"] is None or row["lease"] <= c.hub.now or row["token"] == held


def _followed(c: Session, key: Any) -> bool:
    return any((source, row["key_hash"]) == key for (source, _), row in c.scan("parked"))


STATEMENTS: dict[str, Callable[[Session, Row], Done]] = {
    call.__name__: call
    for call in (
        adopt_watermark,
        claim_key,
        claim_keys,
        clear_starts,
        confirm_copies,
        confirm_retries,
        count_deliveries,
        delete_parked,
        delete_retry,
        due_redrives,
        due_wakes,
        first_followers,
        first_watermark,
        followers,
        insert_done,
        insert_failed,
        insert_parked,
        insert_results,
        keep_claim,
        key_standing,
        late_copies,
        leave_key,
        leave_keys,
        lock_claimed,
        lock_keys,
        lock_releasable,
        look_in_hands,
        look_up,
        look_up_one,
        lost_redrives,
        mark_start,
        move_watermarks,
        overdue_retries,
        park_keys,
        parked_keys,
        parked_standing,
        pause_key,
        read_starts,
        read_watermark,
        release_keys,
        renew_claims,
        resume_key,
        sweep_keys,
        take_in_hand,
        uncopied,
        unhead_keys,
        update_results,
        upsert_quarantined,
        upsert_retry,
        which_server,
    )
}
DURABLE = {"move_watermarks", "first_watermark", "adopt_watermark"}
"""Statements whose commit waits for the log."""
assert LEASE > 0

"""Explain in words where a message stands, what it waits for, what comes next and what a person can do. Pure: no I/O, no clock."""

from datetime import timedelta

from packhorse.console.truth.around import Carrier
from packhorse.console.truth.awaited import Awaited
from packhorse.console.truth.commands import command
from packhorse.console.truth.explain_group import explain_group
from packhorse.console.truth.explain_job import explain_job, unrecorded
from packhorse.console.truth.explain_obstacles import obstacles, tell_key
from packhorse.console.truth.explanation import Action, Draft, Explanation, Part
from packhorse.console.truth.moments import Viewer
from packhorse.console.truth.status import Published, Status, forgotten_line
from packhorse.core.ids import time_of

FOREIGN = 8
"""Version of the ids that are made for records without one, from their place on the topic."""


def explain(status: Status, viewer: Viewer, *, schema: str) -> Explanation:
    """Return the explanation of *status*; *schema* is the database schema that was asked."""
    if not status.known:
        return Explanation(known=False, standing=status.standing, parts=(_unknown(status, viewer, schema),))
    jobs = () if status.job is None else (explain_job(status, status.job, viewer),)
    groups = tuple(explain_group(status, group, viewer) for group in status.groups)
    awaited = tuple(_awaited(status, each, viewer) for each in status.awaited)
    return Explanation(
        known=True, standing=status.standing, parts=(_message(status, viewer), *jobs, *groups, *awaited)
    )


def _unknown(status: Status, viewer: Viewer, schema: str) -> Part:
    draft = Draft(about=f"message {status.id}")
    draft.stands.append(
        f"unknown: no committed transaction wrote this id in database schema {schema}, and no group that works here has a row of "
        "it; it is not accepted and not pending"
    )
    if status.forgotten:
        draft.stands.append(f"it may have been dealt with long ago: {forgotten_line(status.forgotten)}")
    draft.stands.append("such an id comes about in these ways:")
    draft.stands += [f"- {way}" for way in _ways(status, viewer, schema)]
    draft.next.append("nothing: nobody works on it here")
    draft.can += [
        Action(
            what="ask the other databases, and schemas, that write or handle messages",
            command=command("status", status.id, database_url="URL", database_schema="SCHEMA"),
        ),
        Action(what="compare the id with where it came from, digit by digit"),
    ]
    return draft.part()


def _ways(status: Status, viewer: Viewer, schema: str) -> list[str]:
    made = time_of(status.id)
    ways = [
        "its transaction was rolled back, or is still open: until the commit nobody can see its row",
        f"it was written to another database, or to another schema than {schema}",
    ]
    if made is not None and made > viewer.now + timedelta(minutes=5):
        ways.append(
            f"it was typed wrongly, or made by a clock that is ahead: the time in it is {viewer.moment(made)}"
        )
        return ways
    old = "" if made is None else f": the time in it is {viewer.moment(made)}"
    ways.append(f"it is older than what is kept here, and its rows are gone{old}")
    typed = (
        "it was typed wrongly"
        if status.id.version in {7, FOREIGN}
        else f"it was typed wrongly, or is no message's: Packhorse makes ids of version 7, this one is of version {status.id.version}"
    )
    return [*ways, typed]


def _message(status: Status, viewer: Viewer) -> Part:
    draft = Draft(about=f"message {status.id}")
    if status.groups or status.awaited or status.job:
        draft.stands.append(f"in short: {status.standing}")
    row = status.recorded
    of = status.around.replay_of
    if of is not None:
        draft.stands.append(
            f"it is message {of.original}, under the identity that it has in replay {of.run} of group {of.group}: done once more"
        )
        draft.can.append(
            Action(what="see where the message itself stands", command=command("explain", of.original))
        )
    elif row is not None:
        draft.stands.append(f"recorded {viewer.moment(row.created_at)}, as {row.type}")
    elif status.id.version == FOREIGN:
        draft.stands.append(
            "not recorded here: its id is of the kind that is made for a record of another producer, from its place on the topic"
        )
    elif status.job is not None:
        draft.stands.append(unrecorded(status.job))
    elif not status.around.parents:
        draft.stands.append(
            "not recorded here: another database wrote it, or its day is no longer kept in the outbox; what the groups of this "
            "database did is known"
        )
    if status.around.rows > 1:
        draft.stands.append(
            f"{status.around.rows} outbox rows bear this id: it was written more than once, and groups take the later ones as "
            "duplicates"
        )
    _copies(draft, status)
    _published(draft, status, viewer)
    return draft.part()


def _copies(draft: Draft, status: Status) -> None:
    for parent in status.around.parents:
        draft.stands.append(
            f"it is an edited copy of message {parent.id}, in whose place it stands in group {parent.group}"
        )
    for fate in status.around.fates:
        if fate.edited_as is not None:
            draft.stands.append(
                f"an edited copy of it, message {fate.edited_as}, took its place in group {fate.group}"
            )


def _published(draft: Draft, status: Status, viewer: Viewer) -> None:
    """Write down whether it is published, and what keeps it back."""
    match status.published:
        case Published.YES:
            draft.stands.append(f"published: {status.published_why}")
            draft.nothing = f"see below, at {'each group' if status.job is None else 'the job'}"
            if not status.groups and not status.awaited and status.job is None:
                draft.stands.append(
                    "no group that works in this database reads its topic, as far as is known"
                )
                draft.next.append("its groups deal with it in their own databases")
                draft.can.append(
                    Action(
                        what="ask the database of the group",
                        command=command("explain", status.id, database_url="URL"),
                    )
                )
        case Published.NEVER if status.discard is not None:
            gone = status.discard
            draft.stands.append(
                f"it will never be published: {gone.actor} gave it up {viewer.moment(gone.at)}, {gone.way}: "
                f"{gone.why or 'no reason given'}"
            )
            draft.nothing = "nothing: write the message anew if it is needed after all"
        case Published.UNKNOWN if status.job is not None and status.recorded is None:
            draft.nothing = "see the job, below"
        case Published.UNKNOWN:
            draft.stands.append(f"whether it is published is not known: {status.published_why}")
            draft.nothing = "nothing here"
        case _ if status.job is not None and status.job.due_at is not None:
            draft.nothing = "see the job, below"
        case _:
            _not_yet(draft, status, viewer)


def _not_yet(draft: Draft, status: Status, viewer: Viewer) -> None:
    hold, carrier = status.hold, status.around.carrier
    if hold is not None:
        draft.stands.append(
            f"not published yet: hold {hold.id} of its {hold.scope} keeps it back since {viewer.moment(hold.since)}"
        )
        draft.waits.append(f"for the release of hold {hold.id}: {hold.code}, {hold.reason}")
        if hold.state == "releasing" or hold.asked or hold.heals:
            draft.next.append(hold.next)
        else:
            draft.next.append("nothing, until a person orders the release or gives it up")
        draft.can.append(Action(what="look at the hold", command=command("relay", "hold", "show", hold.id)))
    else:
        draft.stands.append(f"not published yet: {status.published_why}")
    if carrier is not None:
        _carrier(draft, carrier, viewer, held=hold is not None)


def _carrier(draft: Draft, carrier: Carrier, viewer: Viewer, *, held: bool) -> None:
    if carrier.owner is None:
        since = "" if carrier.owned_until is None else f" since {viewer.moment(carrier.owned_until)}"
        draft.waits.append(f"for a relay: nobody owns shard {carrier.shard}{since}")
        draft.next.append("a relay that is started publishes it in its first cycles")
        draft.can.append(Action(what="start a relay", command="packhorse relay run"))
        return
    if carrier.finish:
        draft.waits.append("for a change of the number of shards: until it is done no new row is sent")
        draft.can.append(Action(what="see how far the change is", command="packhorse relay status"))
    elif carrier.trouble is not None:
        since = "" if carrier.trouble_since is None else f", since {viewer.moment(carrier.trouble_since)}"
        draft.waits.append(f"for the end of the relay's trouble: {carrier.trouble}{since}")
        draft.next.append("the relay tries again by itself, and publishes it then")
        draft.can.append(Action(what="see the relay's trouble", command="packhorse relay status"))
    elif not held:
        draft.waits.append(f"for the relay: {carrier.owner} owns shard {carrier.shard} and is at work")
        draft.next.append("the relay publishes it in one of its next cycles, mostly within a second")


def _awaited(status: Status, each: Awaited, viewer: Viewer) -> Part:
    """Explain a group that reads the topic and has no row of the message."""
    draft = Draft(about=f"group {each.group}, topic {each.topic}")
    draft.stands.append(each.said)
    if each.below:
        draft.next.append("nothing: the group reads on above it")
        draft.nothing = "nothing is left to do, if its effect is there"
    elif each.below is None:
        draft.next.append("not known without its place")
        draft.can.append(
            Action(what="look for its place on the topic", command=command("status", status.id, "--search"))
        )
    else:
        key = status.around.key_of(each.group, each.topic)
        if key is None:
            draft.next.append("a processor of the group reads on to it, and runs its handler")
        else:
            draft.stands.append("its key is parked in this group")
            draft.next.append("a processor of the group reads on to it, and parks it behind its key")
            tell_key(draft, key, viewer, position=key.waiting + 1)
        obstacles(draft, status.around, each.group, each.topic, each.partition, viewer)
    return draft.part()

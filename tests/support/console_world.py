"""What each operation of the API can be asked about, so that it would be carried out for somebody who has the right."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import httpx
import psycopg
from psycopg.types.json import Jsonb
from tests.support.console_api import token_for
from tests.support.console_rows import new_id, rested
from tests.support.job_rows import accepted, register_reference, running, stopped, uncertain

WHY = "fixed in 1.4.2"
GROUP = "figures"


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """One operation of the document; `right` is what it says that it needs."""

    name: str
    method: str
    path: str
    right: str


def operations(document: dict[str, Any]) -> list[Operation]:
    """Return all operations of *document*."""
    return [
        Operation(name=found["operationId"], method=method, path=path, right=found["x-right"])
        for path, methods in document["paths"].items()
        for method, found in methods.items()
    ]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """
    Real tables and a topic of three records, which the group has read.

    Attributes:
        reader: Somebody who may look, for what has to be previewed first.
        topic: That topic; None: there is no broker.
        payload: What a registry can decode; None: there is none.
    """

    connection: psycopg.Connection[Any]
    reader: httpx.Client
    topic: str | None = None
    payload: bytes | None = None

    def call(self, client: httpx.Client, operation: Operation) -> httpx.Response:
        """Ask *client* for *operation*, about something of its own."""
        return self.ask(client, operation, self.made(operation))

    def made(self, operation: Operation) -> "Asked":
        """Make something that *operation* can be asked about, and return what to ask."""
        return CALLS[operation.name](self)

    def ask(self, client: httpx.Client, operation: Operation, calling: "Asked") -> httpx.Response:
        """Ask *client* for *operation*."""
        path, params, body = calling
        filled = re.sub(r"\{\w+\}", lambda found: path[found[0][1:-1]], operation.path)
        return client.request(
            operation.method, filled.removeprefix("/api/v1"), params=params, json=body or None
        )

    def one(self, query: str, *values: object) -> Any:
        """Return the first value of *query*."""
        row = self.connection.execute(query, values).fetchone()
        assert row is not None
        return row[0]

    def message(self) -> UUID:
        """Return a message in quarantine."""
        return rested(self.connection)

    def order(self, act: str) -> tuple[UUID, dict[str, Any]]:
        """Return a message in quarantine, and the preview's order for *act*."""
        message_id = self.message()
        preview = self.reader.post(f"/quarantine/{message_id}/preview", json={"act": act})
        return message_id, {"order": preview.json()["order"], "why": WHY}

    def failure(self, *, acknowledged: bool = False) -> str:
        """Return the print of a group of failures of its own."""
        message_id = rested(self.connection, group=f"g{new_id().hex[-12:]}")
        found = str(
            self.one(
                "SELECT packhorse.failure_print(group_id, topic, type, reason, error)"
                " FROM packhorse.quarantined_message WHERE message_id = %s",
                message_id,
            )
        )
        if acknowledged:
            self.connection.execute(
                "INSERT INTO packhorse.failure_group (print, acknowledged_by, acknowledged_at, acknowledged_why)"
                " VALUES (%s, 'ann', now(), 'known')",
                (found,),
            )
        return found

    def replay(self, state: str) -> str:
        """Return the number of a replay in *state*, of a topic of its own."""
        topic = f"airline.t{new_id().hex[-12:]}"
        wanted = {
            "group": GROUP,
            "topic": topic,
            "since": "2026-01-01T00:00:00+00:00",
            "counts": {"matched": 3},
        }
        return str(
            self.one(
                "INSERT INTO packhorse.replay (state, group_id, topic, topic_id, wanted, rate, planned_by, expires_at)"
                " VALUES (%s, %s, %s, gen_random_uuid(), %s, 100, 'ann', now() + interval '1 hour') RETURNING id",
                *(state, GROUP, topic, Jsonb(wanted)),
            )
        )

    def redrive(self, state: str) -> str:
        """Return the number of a redrive of one message, in *state*."""
        message_id = self.message()
        number = self.one(
            "INSERT INTO packhorse.redrive (state, wanted, members, rate, stages, most_failures, previewed_by, expires_at,"
            " confirmed_by, confirmed_at, why) VALUES (%s, '{}', 1, 100, '{1}', 0, 'ann', now() + interval '1 hour',"
            " 'ann', now(), 'x') RETURNING id",
            state,
        )
        self.connection.execute(
            'INSERT INTO packhorse.redrive_member (redrive_id, ordinal, group_id, topic, message_id, partition, "offset",'
            ' attempt, redrives, quarantined_at) SELECT %s, 1, group_id, topic, message_id, partition, "offset", attempts,'
            " redrives, quarantined_at FROM packhorse.quarantined_message WHERE message_id = %s",
            (number, message_id),
        )
        return str(number)

    def discarded(self) -> UUID:
        """Return a message that was discarded."""
        message_id = self.message()
        self.connection.execute(
            "UPDATE packhorse.quarantined_message SET state = 'discarded', discarded_at = now() WHERE message_id = %s",
            (message_id,),
        )
        self.connection.execute(
            "UPDATE packhorse.inbox SET outcome = 'discarded' WHERE message_id = %s", (message_id,)
        )
        return message_id

    def restore_order(self) -> tuple[UUID, dict[str, Any]]:
        """Return a discarded message, and the preview's order to restore it."""
        message_id = self.discarded()
        preview = self.reader.post(f"/quarantine/{message_id}/restore/preview", json={}).json()
        return message_id, {"order": preview["order"], "out_of_order": preview["out_of_order"], "why": WHY}

    def job_order(self) -> tuple[UUID, dict[str, Any]]:
        """Return a job that failed for good, and the preview's order to send it back."""
        job_id = stopped(self.connection)
        preview = self.reader.post(f"/jobs/{job_id}/redrive/preview").json()
        return job_id, {"order": preview["order"], "why": WHY}

    def edit(self) -> tuple[UUID, dict[str, Any]]:
        """Return a message that can be edited, and an edited payload with the order that a preview gives."""
        message_id = rested(self.connection, payload=self.payload)
        row = self.connection.execute(
            "SELECT group_id, topic, attempts, redrives, quarantined_at FROM packhorse.quarantined_message WHERE message_id = %s",
            (message_id,),
        ).fetchone()
        assert row is not None
        names = ("group", "topic", "attempt", "redrives", "quarantined_at")
        order = dict(zip(names, row, strict=True)) | {"id": str(message_id)}
        order["quarantined_at"] = order["quarantined_at"].isoformat()
        return message_id, {"order": order, "payload": {"n": 2}, "why": WHY}

    def reset_order(self) -> dict[str, Any]:
        """Return the preview's order of a reset of a group that nobody runs."""
        asked = {"group": f"g{new_id().hex[-12:]}", "topic": self.topic, "to": "earliest"}
        return {"order": self.reader.post("/offsets/preview", json=asked).json()["order"], "why": WHY}

    def holder(self) -> str:
        """Return the name of somebody with a token."""
        name = f"t{new_id().hex[-12:]}"
        token_for(self.connection, "viewer", name=name)
        return name


Asked = tuple[dict[str, str], dict[str, Any], dict[str, Any]]


def asked(path: dict[str, object] | None = None, body: dict[str, Any] | None = None, **params: Any) -> Asked:
    """Return values for the path, the query and the body."""
    return {name: str(value) for name, value in (path or {}).items()}, params, body or {}


def _order(world: World, act: str) -> Asked:
    message_id, body = world.order(act)
    return asked({"message_id": message_id}, body)


def _edit(world: World) -> Asked:
    message_id, body = world.edit()
    return asked({"message_id": message_id}, body)


def _restore(world: World) -> Asked:
    message_id, body = world.restore_order()
    return asked({"message_id": message_id}, body)


def _job_redrive(world: World) -> Asked:
    job_id, body = world.job_order()
    return asked({"job_id": job_id}, body)


def _job_send(world: World) -> Asked:
    register_reference(world.connection)
    topic = "airline.jobs" if world.topic is None else world.topic.replace(".flights", ".jobs")
    return asked({"job_id": accepted(world.connection, topic=topic)}, {"why": WHY})


CALLS: dict[str, Callable[[World], Asked]] = {
    "message_status": lambda w: asked({"message_id": w.message()}),
    "message_explanation": lambda w: asked({"message_id": w.message()}),
    "jobs": lambda w: asked(),
    "job_counts": lambda w: asked(),
    "job_show": lambda w: asked({"job_id": uncertain(w.connection)}),
    "job_unmask": lambda w: asked({"job_id": running(w.connection)}, {"why": WHY}),
    "job_cancel": lambda w: asked({"job_id": running(w.connection)}, {"why": WHY}),
    "job_redrive_preview": lambda w: asked({"job_id": stopped(w.connection)}),
    "job_redrive": _job_redrive,
    "job_send": _job_send,
    "job_resolve": lambda w: asked(
        {"job_id": uncertain(w.connection)},
        {"verdict": "happened", "calls": 1, "answer": {"n": 1}, "why": WHY},
    ),
    "quarantine_list": lambda w: asked(),
    "quarantine_show": lambda w: asked({"message_id": w.message()}),
    "quarantine_unmask": lambda w: asked({"message_id": w.message()}, {"why": WHY}),
    "quarantine_preview": lambda w: asked({"message_id": w.message()}, {"act": "redrive"}),
    "quarantine_redrive": lambda w: _order(w, "redrive"),
    "quarantine_discard": lambda w: _order(w, "discard"),
    "quarantine_restore_preview": lambda w: asked({"message_id": w.discarded()}, {"group": GROUP}),
    "quarantine_restore": _restore,
    "purge_preview": lambda w: asked({}, {"key": "N14228"}),
    "purge": lambda w: asked({}, {"key": w.message().hex, "why": WHY}),
    "redrives": lambda w: asked(),
    "redrives_preview": lambda w: asked({}, {"ids": [str(w.message())]}),
    "redrive": lambda w: asked({"redrive": w.redrive("previewed")}),
    "redrive_members": lambda w: asked({"redrive": w.redrive("previewed")}),
    "redrive_run": lambda w: asked({"redrive": w.redrive("previewed")}, {"why": WHY}),
    "redrive_pause": lambda w: asked({"redrive": w.redrive("running")}, {"why": WHY}),
    "redrive_resume": lambda w: asked({"redrive": w.redrive("paused")}, {"why": WHY}),
    "redrive_abort": lambda w: asked({"redrive": w.redrive("previewed")}, {"why": WHY}),
    "quarantine_edit_preview": lambda w: asked({"message_id": w.edit()[0]}, {"payload": {"n": 2}}),
    "quarantine_edit": _edit,
    "failures": lambda w: asked(),
    "failure": lambda w: asked({"failure": w.failure()}),
    "failure_note": lambda w: asked({"failure": w.failure()}, {"text": "known"}),
    "failure_acknowledge": lambda w: asked({"failure": w.failure()}, {"why": WHY}),
    "failure_unacknowledge": lambda w: asked({"failure": w.failure(acknowledged=True)}, {"why": WHY}),
    "top": lambda w: asked(),
    "key_explanation": lambda w: asked(group=GROUP, topic="airline.aircraft", key="N14228"),
    "pauses": lambda w: asked(group=GROUP),
    "pause": lambda w: asked({}, {"group": f"g{new_id().hex[-12:]}", "anyway": True, "why": WHY}),
    "resume": lambda w: asked({}, {"group": GROUP, "why": WHY}),
    "replays": lambda w: asked(),
    "replay": lambda w: asked({"replay": w.replay("planned")}),
    "replay_plan": lambda w: asked(
        {},
        {"group": GROUP, "topic": w.topic, "partitions": [0], "from_offset": 0},
    ),
    "replay_run": lambda w: asked({"replay": w.replay("planned")}, {"why": WHY}),
    "replay_pause": lambda w: asked({"replay": w.replay("running")}, {"why": WHY}),
    "replay_resume": lambda w: asked({"replay": w.replay("paused")}, {"why": WHY}),
    "replay_stop": lambda w: asked({"replay": w.replay("running")}, {"why": WHY}),
    "offsets": lambda w: asked(group=GROUP, topic=w.topic),
    "offsets_preview": lambda w: asked({}, {"group": GROUP, "topic": w.topic, "to": "earliest"}),
    "offsets_reset": lambda w: asked({}, w.reset_order()),
    "me": lambda w: asked(),
    "operators_list": lambda w: asked(),
    "operators_add": lambda w: asked({}, {"name": "pg_monitor", "role": "viewer", "why": WHY}),
    "operators_user": lambda w: asked({}, {"name": f"u{new_id().hex[-12:]}", "role": "viewer", "why": WHY}),
    "operators_token": lambda w: asked({}, {"name": f"t{new_id().hex[-12:]}", "role": "viewer", "why": WHY}),
    "operators_remove": lambda w: asked({}, {"kind": "token", "name": w.holder(), "why": WHY}),
    "audit": lambda w: asked(),
}
"""How each operation is asked for; a test fails as long as a new one is not here."""

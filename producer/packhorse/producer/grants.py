"""Least rights of the kinds of database roles, as SQL."""

from collections.abc import Iterator, Sequence

from packhorse.core.errors import SettingsError
from packhorse.core.naming import checked_identifier

WRITER = """
GRANT USAGE ON SCHEMA "{schema}" TO "{role}";
GRANT INSERT (id, aggregatetype, aggregateid, type, schema_version, payload, traceparent, tracestate, correlation_id,
    causation_id, origin, actor, tenant, expires_at, headers) ON "{schema}".outbox TO "{role}";
GRANT SELECT ON "{schema}".schema_version TO "{role}";
GRANT INSERT (id, type, version, topic, input, tenant, actor, correlation_id, causation_id, origin, traceparent, request_key,
    priority, one_waiting, one_running, not_before, expires_at, changed_by), SELECT (id, type, version, topic, group_id, state,
    attempt, tenant, actor, correlation_id, causation_id, origin, traceparent, request_key, priority, one_waiting, one_running,
    not_before, expires_at, accepted_at, changed_at, changed_by, reason, started_at, finished_at, worker, lease_until,
    cancel_asked_at, cancel_asked_by, cancel_why, progress_done, progress_total, progress_text, progress_at, result, error,
    purged_at) ON "{schema}".job TO "{role}";
GRANT INSERT (type, tenant, request_key, job_id, digest), SELECT ON "{schema}".job_request TO "{role}";
GRANT INSERT, SELECT, UPDATE (name) ON "{schema}".job_waiting TO "{role}";
GRANT INSERT ON "{schema}".job_due TO "{role}";
GRANT EXECUTE ON FUNCTION "{schema}".cancel_job(uuid, text, text) TO "{role}";
GRANT SELECT ON "{schema}".job_transition TO "{role}";
GRANT SELECT (job_id, key, idempotency_key, state, attempt, calls, intended_at, timeout, changed_at, changed_by, why)
    ON "{schema}".job_effect TO "{role}";
"""

RELAY = """
GRANT USAGE ON SCHEMA "{schema}" TO "{role}";
GRANT SELECT ON "{schema}".outbox, "{schema}".schema_version, "{schema}".alembic_version TO "{role}";
GRANT SELECT, UPDATE ON "{schema}".relay TO "{role}";
GRANT SELECT, INSERT, UPDATE ON "{schema}".relay_hold TO "{role}";
GRANT SELECT ON "{schema}".relay_discard, "{schema}".outbox_seq_seq TO "{role}";
GRANT SELECT, INSERT, UPDATE, DELETE ON "{schema}".relay_member TO "{role}";
GRANT SELECT, UPDATE ON "{schema}".retention TO "{role}";
GRANT EXECUTE ON FUNCTION "{schema}".day_partitions(), "{schema}".make_day_partition(date, int),
    "{schema}".empty_partition(text, date, int, boolean), "{schema}".drop_partition(text, date, int) TO "{role}";
"""

PROCESSOR = f"""{WRITER.rstrip()}
GRANT SELECT ON "{{schema}}".alembic_version TO "{{role}}";
GRANT SELECT, INSERT, UPDATE, DELETE ON "{{schema}}".inbox, "{{schema}}".watermark, "{{schema}}".failed_attempt,
    "{{schema}}".quarantined_message, "{{schema}}".parked_key, "{{schema}}".parked_message, "{{schema}}".retry_message,
    "{{schema}}".in_hand, "{{schema}}".started, "{{schema}}".pause, "{{schema}}".processor_member,
    "{{schema}}".inbox_retention, "{{schema}}".job, "{{schema}}".job_request, "{{schema}}".job_waiting, "{{schema}}".job_running,
    "{{schema}}".job_due, "{{schema}}".job_step, "{{schema}}".job_effect, "{{schema}}".job_policy,
    "{{schema}}".job_retention TO "{{role}}";
GRANT SELECT, DELETE ON "{{schema}}".job_transition TO "{{role}}";
GRANT INSERT (actor, act, group_id, topic, message_id, detail, why) ON "{{schema}}".audit TO "{{role}}";
GRANT EXECUTE ON FUNCTION "{{schema}}".inbox_partitions(), "{{schema}}".inbox_bound(date),
    "{{schema}}".make_inbox_partition(date, int), "{{schema}}".fence_inbox(text, date, date, int),
    "{{schema}}".clean_inbox_partition(text, uuid, text, text, int), "{{schema}}".drop_inbox_partition(text, int, boolean),
    "{{schema}}".fold_quarantine(int) TO "{{role}}";
GRANT SELECT ON "{{schema}}".quarantine_tally, "{{schema}}".quarantine_change TO "{{role}}";
GRANT SELECT, INSERT, UPDATE ON "{{schema}}".failure_group TO "{{role}}";
"""

_LOOK = """
GRANT USAGE ON SCHEMA "{schema}" TO "{role}";
GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO "{role}";
REVOKE SELECT ON "{schema}".purge_secret, "{schema}".operator FROM "{role}";
GRANT SELECT (kind, name, role, personal, edit, made_at, made_by, expires_at) ON "{schema}".operator TO "{role}";
GRANT SELECT ON "{schema}".outbox_seq_seq TO "{role}";
GRANT INSERT (actor, act, group_id, topic, message_id, detail, why) ON "{schema}".audit TO "{role}";
GRANT EXECUTE ON FUNCTION "{schema}".operator_standing(bytea, boolean), "{schema}".user_standing(text, boolean) TO "{role}";
"""

# One column of job, and of no weight: rows are locked with it. States of jobs are changed by functions and triggers alone.
_ACT = f"""{_LOOK.rstrip()}
GRANT INSERT, UPDATE ON "{{schema}}".inbox TO "{{role}}";
GRANT UPDATE ON "{{schema}}".quarantined_message, "{{schema}}".watermark TO "{{role}}";
GRANT INSERT, UPDATE, DELETE ON "{{schema}}".parked_key, "{{schema}}".pause TO "{{role}}";
GRANT INSERT ON "{{schema}}".parked_message, "{{schema}}".failure_note TO "{{role}}";
GRANT INSERT, UPDATE ON "{{schema}}".failure_group, "{{schema}}".redrive, "{{schema}}".redrive_member, "{{schema}}".replay,
    "{{schema}}".replay_partition TO "{{role}}";
GRANT DELETE ON "{{schema}}".redrive TO "{{role}}";
GRANT UPDATE (progress_at) ON "{{schema}}".job TO "{{role}}";
GRANT UPDATE (state, changed_at, changed_by, why, answer) ON "{{schema}}".job_effect TO "{{role}}";
GRANT EXECUTE ON FUNCTION "{{schema}}".cancel_job(uuid, text, text), "{{schema}}".send_job(uuid, text, bytea) TO "{{role}}";
GRANT INSERT, DELETE ON "{{schema}}".replay_message TO "{{role}}";
GRANT UPDATE (orders, token) ON "{{schema}}".relay TO "{{role}}";
GRANT INSERT, UPDATE ON "{{schema}}".relay_hold TO "{{role}}";
GRANT INSERT ON "{{schema}}".watermark, "{{schema}}".relay_discard TO "{{role}}";
GRANT EXECUTE ON FUNCTION "{{schema}}".fold_quarantine(int) TO "{{role}}";
"""

_NAMED = """
INSERT INTO "{{schema}}".operator (kind, name, role, made_by) VALUES ('role', '{{role}}', '{purpose}', 'migrate sql')
    ON CONFLICT DO NOTHING;
"""

VIEWER = _LOOK.rstrip() + _NAMED.format(purpose="viewer")
OPERATOR = _ACT.rstrip() + _NAMED.format(purpose="operator")
ADMIN = f"""{_ACT.rstrip()}
GRANT SELECT, INSERT, UPDATE, DELETE ON "{{schema}}".operator TO "{{role}}";
GRANT UPDATE ON "{{schema}}".failed_attempt TO "{{role}}";
GRANT DELETE ON "{{schema}}".parked_message, "{{schema}}".retry_message TO "{{role}}";
GRANT DELETE ON "{{schema}}".job_transition, "{{schema}}".job_request, "{{schema}}".job_step, "{{schema}}".job_effect,
    "{{schema}}".job_waiting, "{{schema}}".job_running, "{{schema}}".job_due TO "{{role}}";
GRANT UPDATE ON "{{schema}}".job, "{{schema}}".job_effect, "{{schema}}".job_step, "{{schema}}".job_running TO "{{role}}";
GRANT EXECUTE ON FUNCTION "{{schema}}".purge_outbox(uuid[], boolean), "{{schema}}".outbox_fates(uuid[]),
    "{{schema}}".purge_mark(text) TO "{{role}}";{_NAMED.format(purpose="admin")}"""

REGISTRAR = """
GRANT USAGE ON SCHEMA "{schema}" TO "{role}";
GRANT SELECT, INSERT, UPDATE ON "{schema}".schema_version TO "{role}";
"""

PURPOSES = {
    "writer": WRITER,
    "relay": RELAY,
    "processor": PROCESSOR,
    "viewer": VIEWER,
    "operator": OPERATOR,
    "admin": ADMIN,
    "registrar": REGISTRAR,
}
"""
What each role is for: `registrar` runs `packhorse schemas register`; `viewer`, `operator` and `admin` are people who look, act,
and say who may.
"""


def grants(schema: str, roles: Sequence[tuple[str, str]]) -> Iterator[str]:
    """
    Yield the grants for *roles*, pairs of purpose and role; without any, those of all purposes as comments.

    Raises:
        SettingsError: A purpose is unknown or a role's name is not legal.
    """
    for purpose, role in roles:
        if purpose not in PURPOSES:
            raise SettingsError(
                f"--grants {purpose}={role}: allowed are {', '.join(PURPOSES)}, e.g. writer=app"
            )
        yield PURPOSES[purpose].format(schema=schema, role=checked_identifier(role, what="database role"))
    if not roles:
        for purpose, template in PURPOSES.items():
            text = template.format(schema=schema, role=f"packhorse_{purpose}").strip()
            yield f"\n-- least rights for the purpose {purpose}:\n" + "\n".join(
                f"-- {line}" for line in text.splitlines()
            )

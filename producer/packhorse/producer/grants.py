"""Least rights of the kinds of database roles, as SQL."""

from collections.abc import Iterator, Sequence

from packhorse.core.errors import SettingsError
from packhorse.core.naming import checked_identifier

WRITER = """
GRANT USAGE ON SCHEMA "{schema}" TO "{role}";
GRANT INSERT (id, aggregatetype, aggregateid, type, schema_version, payload, traceparent, tracestate, correlation_id,
    causation_id, origin, actor, tenant, expires_at, headers) ON "{schema}".outbox TO "{role}";
GRANT SELECT ON "{schema}".schema_version TO "{role}";
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
    "{{schema}}".inbox_retention TO "{{role}}";
GRANT INSERT ON "{{schema}}".audit TO "{{role}}";
GRANT EXECUTE ON FUNCTION "{{schema}}".inbox_partitions(), "{{schema}}".inbox_bound(date),
    "{{schema}}".make_inbox_partition(date, int), "{{schema}}".fence_inbox(text, date, date, int),
    "{{schema}}".clean_inbox_partition(text, uuid, text, text, int), "{{schema}}".drop_inbox_partition(text, int, boolean)
    TO "{{role}}";
"""

OPERATOR = """
GRANT USAGE ON SCHEMA "{schema}" TO "{role}";
GRANT SELECT ON ALL TABLES IN SCHEMA "{schema}" TO "{role}";
GRANT SELECT ON "{schema}".outbox_seq_seq TO "{role}";
GRANT UPDATE ON "{schema}".inbox, "{schema}".quarantined_message, "{schema}".watermark, "{schema}".parked_key TO "{role}";
GRANT INSERT, UPDATE, DELETE ON "{schema}".pause TO "{role}";
GRANT INSERT, DELETE ON "{schema}".parked_key TO "{role}";
GRANT UPDATE (orders, token) ON "{schema}".relay TO "{role}";
GRANT INSERT, UPDATE ON "{schema}".relay_hold TO "{role}";
GRANT INSERT ON "{schema}".watermark, "{schema}".audit, "{schema}".relay_discard TO "{role}";
"""

REGISTRAR = """
GRANT USAGE ON SCHEMA "{schema}" TO "{role}";
GRANT SELECT, INSERT, UPDATE ON "{schema}".schema_version TO "{role}";
"""

PURPOSES = {
    "writer": WRITER,
    "relay": RELAY,
    "processor": PROCESSOR,
    "operator": OPERATOR,
    "registrar": REGISTRAR,
}
"""What each role is for: `registrar` runs `packhorse schemas register`."""


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

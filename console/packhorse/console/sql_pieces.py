"""Pieces that statements of several rooms share, so that what is ordered and parked is so in one way; `{schema}` as everywhere."""

from collections.abc import Mapping

_AGE = """(SELECT count(DISTINCT o.topic_id) FROM {{schema}}.watermark AS o
        WHERE o.group_id = {group} AND o.topic = {topic} AND o.topic_id <> {topic_id} AND o.first_at < (
            SELECT min(w.first_at) FROM {{schema}}.watermark AS w WHERE w.group_id = {group} AND w.topic_id = {topic_id}))"""
PIECES = {
    "<ordered>": "outcome = 'retry', attempt = i.attempt + 1, due_at = clock_timestamp(), changed_at = clock_timestamp()",
    "<redriven>": "state = 'redriven', redrives = q.redrives + 1, redrive_sent_at = NULL, redrive_refused = NULL",
    "<new token>": "(extract(epoch FROM clock_timestamp()) * 1000000)::bigint",
    "<insert parked message>": """
INSERT INTO {schema}.parked_message (group_id, topic, message_id, key_hash, topic_age, topic_id, partition, "offset",
    leader_epoch, timestamp_ms, key, payload, headers, type, tenant)""",
    "<age of q>": _AGE.format(group="q.group_id", topic="q.topic", topic_id="q.topic_id"),
    "<age of the topic>": _AGE.format(group="%(group)s", topic="%(topic)s", topic_id="%(topic_id)s"),
}


def put(statement: str, pieces: Mapping[str, str] = PIECES) -> str:
    """
    Return *statement* with *pieces* in the places of their names.

    `<ordered>`: inbox row i is ordered its next attempt, due now by the database's clock. `<redriven>`: quarantined message q is
    taken for a redrive. `<new token>`: of a key that is parked anew, higher than any that it had before. `<insert parked message>`:
    with the columns in the order in which each room gives them. `<age of …>`: how many topics of that name the group has known
    before, for quarantined message q, or for the topic that is given.
    """
    for name, piece in pieces.items():
        statement = statement.replace(name, piece)
    return statement

"""What is asked of pauses besides the store's own statements; `{schema}` is a checked identifier."""

# Keys that people have paused, the oldest first, with what waits behind each. Those of before who paused them was kept have parked_at.
PAUSED_KEYS = """
SELECT k.topic, k.key_hash, k.partition,
    (SELECT count(*) FROM "{schema}".parked_message f
     WHERE f.group_id = k.group_id AND f.topic = k.topic AND f.key_hash = k.key_hash),
    k.paused_by, k.paused_why, coalesce(k.paused_at, k.parked_at) AS since
FROM "{schema}".parked_key k WHERE k.group_id = %(group)s AND k.paused ORDER BY since, k.topic, k.key_hash LIMIT %(most)s"""

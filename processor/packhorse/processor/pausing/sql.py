"""What the command asks besides the store's own statements; `{schema}` is a checked identifier."""

# Keys that people have paused, the oldest first, with what waits behind each.
PAUSED_KEYS = """
SELECT k.topic, k.key_hash, k.partition,
    (SELECT count(*) FROM "{schema}".parked_message f
     WHERE f.group_id = k.group_id AND f.topic = k.topic AND f.key_hash = k.key_hash), k.parked_at
FROM "{schema}".parked_key k WHERE k.group_id = %(group)s AND k.paused ORDER BY k.parked_at LIMIT %(most)s"""

# The role that is connected.
ROLE = "SELECT current_user::text"

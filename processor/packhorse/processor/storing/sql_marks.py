"""Statements on watermarks; `{schema}`, `{incarnation}` and `{durable}` are filled in by `sql.queries_for`."""

# Which server answers.
WHICH_SERVER = "SELECT {incarnation}"

# Moves the watermark by compare-and-set on its old value and the server, in a durable transaction of its own.
MOVE_WATERMARK = """
UPDATE "{schema}".watermark w
SET "offset" = %(new)s, leader_epoch = %(leader_epoch)s, moved_at = clock_timestamp()
FROM {durable} d
WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s
    AND w."offset" = %(old)s AND w.incarnation = {incarnation} AND d.mode IS NOT NULL"""

# Moves the watermarks of many partitions, each by compare-and-set, in one durable transaction of its own; returns those
# that moved. Sorted, so that two owners of the same partitions do not wait for each other in a ring. The starts of messages
# below are forgotten with it: a process that dies behind the result of one leaves them.
MOVE_WATERMARKS = """
WITH moved AS (
UPDATE "{schema}".watermark w
SET "offset" = r.new, leader_epoch = r.epoch, moved_at = clock_timestamp()
FROM {durable} d, (SELECT {incarnation} AS incarnation) s,
    (SELECT * FROM unnest(%(topic_ids)s::uuid[], %(partitions)s::int[], %(olds)s::bigint[], %(news)s::bigint[],
        %(epochs)s::int[]) AS u (topic_id, partition, old, new, epoch) ORDER BY u.topic_id, u.partition) r
WHERE w.group_id = %(group)s AND w.topic_id = r.topic_id AND w.partition = r.partition AND w."offset" = r.old
    AND w.incarnation = s.incarnation AND d.mode IS NOT NULL
RETURNING w.topic_id, w.partition, w."offset"
), forgotten AS (
    DELETE FROM "{schema}".started b USING moved m
    WHERE b.group_id = %(group)s AND b.topic_id = m.topic_id AND b.partition = m.partition AND b."offset" < m."offset"
)
SELECT topic_id, partition FROM moved"""

# The watermark of one partition, and whether this server wrote it. Always one row.
READ_WATERMARK = """
SELECT w."offset", w.leader_epoch, w.incarnation = {incarnation},
    (SELECT count(*) FROM "{schema}".watermark o
     WHERE o.group_id = %(group)s AND o.topic = %(topic)s AND o.topic_id <> %(topic_id)s),
    (SELECT count(DISTINCT o.topic_id) FROM "{schema}".watermark o
     WHERE o.group_id = %(group)s AND o.topic = %(topic)s AND o.topic_id <> %(topic_id)s)
FROM (SELECT 1) AS one
LEFT JOIN "{schema}".watermark w
    ON w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s"""

# The first watermark of a partition, durably; whoever else was first wins.
FIRST_WATERMARK = """
INSERT INTO "{schema}".watermark (group_id, topic_id, partition, topic, "offset", leader_epoch, incarnation)
SELECT %(group)s, %(topic_id)s, %(partition)s, %(topic)s, %(new)s, NULL, {incarnation}
FROM {durable} d WHERE d.mode IS NOT NULL
ON CONFLICT DO NOTHING"""

# Takes over a watermark that another server wrote (restored, failed over), or sets it anew, by compare-and-set.
ADOPT_WATERMARK = """
UPDATE "{schema}".watermark w
SET "offset" = %(new)s, incarnation = {incarnation}, moved_at = clock_timestamp(),
    leader_epoch = CASE WHEN %(new)s = w."offset" THEN w.leader_epoch END
FROM {durable} d
WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s
    AND w."offset" = %(old)s AND d.mode IS NOT NULL"""

# All watermarks of a group.
WATERMARKS = """
SELECT topic, topic_id, partition, "offset", extract(epoch FROM clock_timestamp() - moved_at)::float8
FROM "{schema}".watermark WHERE group_id = %(group)s ORDER BY topic, topic_id, partition"""

# Sets a watermark because a person said so, whatever it was; returns what it was.
RESET_WATERMARK = """
WITH was AS (
    SELECT w."offset" FROM "{schema}".watermark w
    WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s
    FOR UPDATE
), done AS (
    INSERT INTO "{schema}".watermark AS w (group_id, topic_id, partition, topic, "offset", leader_epoch, incarnation)
    SELECT %(group)s, %(topic_id)s, %(partition)s, %(topic)s, %(new)s, NULL, {incarnation}
    FROM {durable} d WHERE d.mode IS NOT NULL
    ON CONFLICT (group_id, topic_id, partition) DO UPDATE
    SET "offset" = EXCLUDED."offset", leader_epoch = NULL, incarnation = EXCLUDED.incarnation,
        moved_at = clock_timestamp()
    RETURNING 1
)
SELECT (SELECT "offset" FROM was) FROM done"""

"""Watermarks, before they are reset. `{schema}` is the database schema of Packhorse's tables."""

LOCK_WATERMARK = """
SELECT w."offset" FROM {schema}.watermark AS w
WHERE w.group_id = %(group)s AND w.topic_id = %(topic_id)s AND w.partition = %(partition)s FOR UPDATE
"""
"""Where the group is, held so that nobody moves it until it is reset."""

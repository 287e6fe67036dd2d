# mypy: ignore-errors
"""
quixstreams 3.28.1 with its PostgreSQL sink; runs in an environment of its own, until SIGTERM.

Tuned as its documentation says: the sink writes a batch at each checkpoint, so checkpoints come by count (`commit_every`)
and by time; the table is not looked at before each batch (`schema_auto_update=False`); no metadata columns.
"""

from urllib.parse import urlsplit

from quixstreams import Application
from quixstreams.sinks.community.postgresql import PostgreSQLSink
from values import DATABASE, GROUP, SERVERS, TOPIC, id_of, number_reader

BATCH, SECONDS = 1_000, 0.1

read = number_reader()


def main():
    url = urlsplit(DATABASE)
    app = Application(
        SERVERS, consumer_group=GROUP, auto_offset_reset="earliest", commit_every=BATCH, commit_interval=SECONDS,
        consumer_poll_timeout=SECONDS, loglevel="WARNING", auto_create_topics=False, use_changelog_topics=False,
    )  # fmt: skip
    sink = PostgreSQLSink(
        host=url.hostname, port=url.port, dbname=url.path[1:], user=url.username, password="", table_name="result",
        schema_auto_update=False, include_metadata=False,
    )  # fmt: skip
    rows = app.dataframe(app.topic(TOPIC, key_deserializer="bytes", value_deserializer="bytes")).apply(
        lambda value, _key, _timestamp, headers: {"id": id_of(headers), "n": read(value)}, metadata=True
    )
    rows.sink(sink)
    app.run()


if __name__ == "__main__":
    main()

"""What an operator does first: tables, schemas and topics."""

import psycopg

from examples.common.children import Children
from examples.common.surroundings import Surroundings, refuse_topics_in_use
from examples.flights import sql
from examples.flights.messages import FlightScheduled

FIGURES = "examples.flights.figures:app"


def prepare(around: Surroundings, children: Children) -> None:
    """
    Make the tables of Packhorse, of operations and of the figures; register the schemas; make the topics.

    Raises:
        ChildFailed: A command failed.
        SettingsError: The broker has the topic of the flights already.
    """
    refuse_topics_in_use(around, children, FIGURES, FlightScheduled.__packhorse__.topic)
    children.run("migrate", "up")
    children.run("schemas", "register")
    children.run("topics", "apply", FIGURES)
    with psycopg.connect(around.database_url, autocommit=True) as connection:
        for tables in (sql.OPERATIONS_TABLES, sql.FIGURES_TABLES, sql.OUTAGE_TABLES):
            connection.execute(tables)

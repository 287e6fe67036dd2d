"""What the tests' own databases are copied from."""

from datetime import timedelta

import psycopg
import pytest
from tests.support import databases

from packhorse.local.settings import Endpoints


def test_a_template_is_of_the_day_on_which_it_is_copied(
    stack: Endpoints, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Fails when tests that run over midnight find the partitions of the day before."""
    with databases.template_with_tables(stack.database_url) as template:
        url = databases.with_database(stack.database_url, template)
        with psycopg.connect(url) as connection:
            connection.execute("CREATE TABLE of_the_day_before ()")
        today = databases._MADE_ON[template]
        monkeypatch.setitem(databases._MADE_ON, template, today - timedelta(days=1))
        for _ in range(2):
            with (
                databases.fresh_database(stack.database_url, template) as fresh,
                psycopg.connect(fresh) as connection,
            ):
                found = connection.execute(
                    "SELECT to_regclass('of_the_day_before'), to_regclass('packhorse.outbox')"
                )
                assert found.fetchone() == (None, "packhorse.outbox")
        assert databases._MADE_ON[template] == today

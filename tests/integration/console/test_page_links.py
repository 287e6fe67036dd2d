"""Where pages lead: from lists to the way of a message, from there to the quarantine, and back."""

from html import unescape
from typing import Any

import psycopg
import pytest
from tests.support.console_api import console_on, token_for
from tests.support.console_pages import pages_of
from tests.support.console_rows import one, rested

PRINT = (
    "SELECT packhorse.failure_print(group_id, topic, type, reason, error) FROM packhorse.quarantined_message"
)


@pytest.mark.parametrize("state", ["quarantined", "redriven", "discarded"])
def test_the_way_of_a_message_and_its_page_in_the_quarantine_lead_to_each_other(
    database: str, connection: psycopg.Connection[Any], state: str
) -> None:
    """Fails when a list leads elsewhere than all others do, or one of the two pages is a dead end."""
    found = rested(connection)
    print_ = one(connection, PRINT)
    connection.execute("UPDATE packhorse.quarantined_message SET state = %s", (state,))
    which = f"{found}?group=figures&topic=airline.aircraft"
    way, resting = f'href="/messages/{which}"', f'href="/quarantine/{which}"'
    with console_on(database) as console, pages_of(console, token_for(connection, "viewer")) as client:
        for path, link in (
            ("/quarantine/messages?state=all", way),
            (f"/quarantine/failures/{print_}", way),
            (f"/messages/{which}", resting),
            (f"/quarantine/{which}", way),
        ):
            page = client.get(path)
            assert page.status_code == 200, path
            assert link in unescape(page.text), path

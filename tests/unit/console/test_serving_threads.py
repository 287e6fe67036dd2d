"""How many threads a console has for what blocks."""

import asyncio
from typing import Any

from anyio import to_thread
from pydantic import SecretStr

from packhorse.console.serving.postgres import most_held
from packhorse.console.serving.uvicorn import with_threads
from packhorse.console.settings import ConsoleSettings


def test_more_requests_can_be_in_hand_than_may_wait_for_the_database() -> None:
    """Fails when requests that wait for the database can take all threads from those that ask it for nothing."""
    found: list[float] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        del scope, receive, send
        found.append(to_thread.current_default_thread_limiter().total_tokens)

    settings = ConsoleSettings(database_url=SecretStr("postgresql://x/y"), connections=50)
    asyncio.run(with_threads(app, most_held(settings) + 1)({}, None, None))
    assert found == [most_held(settings) + 1]
    assert most_held(settings) > settings.connections

"""An application that erases what it keeps of a person; it can be told to die while it does so."""

import os
import signal
from typing import Any

from tests.support.accounts import AccountOpened

from packhorse.processor import Context, Processor, Subject

app = Processor("passengers")


@app.handler(AccountOpened)
def opened(message: AccountOpened, ctx: Context) -> None:
    """Do nothing: the application is here for its eraser."""


@app.eraser
def passengers(connection: Any, subject: Subject) -> int:
    """Erase the subject's rows, or die with that done and not committed."""
    gone: int = connection.execute("DELETE FROM passenger WHERE email = %s", (subject.key,)).rowcount
    if os.environ.get("KILL_ERASER"):
        os.kill(os.getpid(), signal.SIGKILL)
    return gone

"""What several commands of the console share: options, and the settings that flags and the environment make."""

from typing import TYPE_CHECKING, Annotated
from uuid import UUID

import typer

from packhorse.core.errors import UsageError

if TYPE_CHECKING:
    from packhorse.console.settings import ConsoleSettings

MessageId = Annotated[UUID, typer.Argument(metavar="ID", help="The message's id.")]
Group = Annotated[str | None, typer.Option("--group", metavar="NAME", help="Of this group.")]
Topic = Annotated[str | None, typer.Option("--topic", metavar="NAME", help="From this source topic.")]
Type = Annotated[str | None, typer.Option("--type", metavar="NAME", help="Of this message type.")]
Reason = Annotated[str | None, typer.Option("--reason", metavar="CODE", help="With this reason code.")]
Tenant = Annotated[str | None, typer.Option("--tenant", metavar="NAME", help="Of this tenant.")]
Limit = Annotated[int, typer.Option("--limit", metavar="N", help="At most N on a page, up to 1000.")]
Why = Annotated[str, typer.Option("--why", metavar="TEXT", help="The reason, for the record.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for a confirmation.")]

ShowKey = Annotated[bool, typer.Option("--show-key", help="Show the key, which may say who somebody is.")]
Csv = Annotated[
    bool, typer.Option("--csv", help="Print CSV; a spreadsheet takes no cell of it for a formula.")
]
After = Annotated[
    str | None, typer.Option("--after", metavar="POSITION", help="Behind this: a page says what the next is.")
]
KeyHex = Annotated[
    str | None,
    typer.Option(
        "--key-hex", metavar="HEX", help="A key that is no text in UTF-8: its bytes, in hexadecimal."
    ),
]
ClaimedActor = Annotated[
    str | None, typer.Option("--actor", metavar="NAME", help="On whose behalf; recorded as claimed.")
]


def key_of(text: str | None, hexed: str | None = None, *, flag: str = "--key") -> bytes | None:
    r"""
    Return the bytes of the key that is given as *text* by *flag*, or as *hexed* by the one beside it; None: neither is.

    >>> key_of("N1"), key_of(None, "FF 00"), key_of(None)
    (b'N1', b'\xff\x00', None)

    Raises:
        UsageError: Both are given, or one is not what it has to be; no text of a key is in it.
    """
    if text is not None and hexed is not None:
        raise UsageError(f"{flag} and {flag}-hex name the same thing: give one of them")
    if hexed is None:
        return None if text is None else text.encode()
    try:
        return bytes.fromhex(hexed)
    except ValueError:
        raise UsageError(f"{flag}-hex is no hexadecimal: two digits a byte, such as ff00") from None


def settings_of(
    url: str | None,
    schema: str | None,
    *,
    broker: str | None = None,
    registry: str | None = None,
    namespace: str | None = None,
) -> "ConsoleSettings":
    """Return the console's settings, with what flags say."""
    from packhorse.console.settings import ConsoleSettings

    return ConsoleSettings.load(
        {
            "database_url": url,
            "database_schema": schema,
            "kafka_bootstrap_servers": broker,
            "registry_url": registry,
            "namespace": namespace,
        }
    )

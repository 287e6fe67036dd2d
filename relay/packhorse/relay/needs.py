"""Judge what a relay needs in its database, before anything is sent: tables, functions, the rights on them."""

from collections.abc import Iterable, Sequence

from packhorse.core.errors import NotReady
from packhorse.relay.model import Row


def check_needs(schema: str, needs: Iterable[Row]) -> None:
    """
    Judge the rows of NEEDS: kind, name, whether it is there, privilege, whether this role has it.

    Raises:
        NotReady: Names all that is missing, and the command that mends it.
    """
    missing = [need[:4] for need in needs if not need[4]]
    gone = sorted({f"{kind} {schema}.{name}" for kind, name, there, _ in missing if not there})
    if gone:
        verb = "is" if len(gone) == 1 else "are"
        raise NotReady(f"{', '.join(gone)} {verb} missing; run `packhorse migrate up`")
    if missing:
        rights = ", ".join(f"{privilege} on {schema}.{name}" for _, name, _, privilege in missing)
        raise NotReady(
            f"this database role has no {rights}; `packhorse migrate sql --grants relay=ROLE` prints what it needs"
        )


def check_cache(schema: str, found: Sequence[Row]) -> None:
    """
    Judge the row of CACHE.

    Raises:
        NotReady: Sessions would draw seq ahead, and order would be lost.
    """
    cache = found[0][0] if found else None
    if cache != 1:
        raise NotReady(
            f"the sequence of {schema}.outbox.seq has cache {cache}, and order needs 1; "
            f"run ALTER TABLE {schema}.outbox ALTER COLUMN seq SET CACHE 1"
        )

"""Find an account without rights for a Postgres that root starts: it refuses to run as root itself."""

import os
import pwd
import subprocess
from dataclasses import dataclass
from pathlib import Path

from packhorse.local.errors import StackFailed

_ACCOUNTS = ("postgres", "nobody", "daemon")


@dataclass(frozen=True, slots=True, kw_only=True)
class Account:
    """An account of this machine."""

    name: str
    user: int
    group: int


def unprivileged_account() -> Account | None:
    """
    Return the account that Postgres runs as when we are root; None when we are not and it runs as us.

    Raises:
        StackFailed: None of the usual accounts exists.
    """
    if os.geteuid() != 0:
        return None
    for name in _ACCOUNTS:
        try:
            entry = pwd.getpwnam(name)
        except KeyError:
            continue
        if entry.pw_uid != 0:
            return Account(name=name, user=entry.pw_uid, group=entry.pw_gid)
    raise StackFailed(
        f"Postgres refuses to run as root and none of the accounts {', '.join(_ACCOUNTS)} exists;"
        " run as a normal user, or add an account named postgres"
    )


def can_enter(account: Account, folder: Path) -> bool:
    """
    Tell whether the account reaches *folder*, by asking the system as that account (modes, ACLs and all).

    Raises:
        StackFailed: The system does not let us become that account.
    """
    try:
        asked = subprocess.run(
            ["/bin/sh", "-c", 'cd -- "$1" 2>/dev/null', "sh", str(folder)],
            user=account.user,
            group=account.group,
            extra_groups=[],
            cwd="/",
            check=False,
        )
    except (OSError, subprocess.SubprocessError) as error:
        raise StackFailed(
            f"Postgres refuses to run as root, and this system does not let root start it as {account.name}"
            f" ({error}); run the command as a normal user"
        ) from error
    return asked.returncode == 0

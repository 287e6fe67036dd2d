"""`python -m examples.projection make | swap | retire`: what is done to the database, step by step."""

import os
import sys

import psycopg

from examples.projection.swap import swap
from examples.projection.tables import FORGET, NEW, RETIRE_OLD
from examples.projection.turnover import old


def main(step: str) -> int:
    """Do one step and return the exit status; of `swap` 1 says that it is not yet time, and is tried again."""
    with psycopg.connect(os.environ["PACKHORSE_DATABASE_URL"], autocommit=True) as connection:
        if step == "make":
            connection.execute(NEW)
        elif step == "retire":
            with connection.transaction():
                connection.execute(RETIRE_OLD)
                for statement in FORGET:
                    connection.execute(statement, {"group": old.group})
        elif why_not := swap(connection):
            print(why_not)
            return 1
    print(f"{step}: done")
    return 0


if __name__ == "__main__":
    steps = ("make", "swap", "retire")
    if sys.argv[1:] not in [[step] for step in steps]:
        sys.exit(f"python -m examples.projection {' | '.join(steps)}")
    sys.exit(main(sys.argv[1]))

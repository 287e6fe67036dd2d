"""Which way versions of a subject must be readable."""

from enum import StrEnum


class Direction(StrEnum):
    """
    Which way versions must be readable, always between all versions of a subject.

    `backward`: the newer reads the older's messages, so readers are upgraded first. `forward`: the older reads the
    newer's, so writers are upgraded first. `full`: both, in any order.
    """

    BACKWARD = "backward"
    FORWARD = "forward"
    FULL = "full"

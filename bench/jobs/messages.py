"""The input of the jobs that are measured: a number."""

from dataclasses import dataclass
from functools import cache
from typing import Any, ClassVar

from packhorse.core.message import MessageType


@cache
def work(namespace: str, aggregatetype: str = "work") -> Any:
    """Return the class of the inputs of one namespace; each aggregatetype is a type of jobs of its own."""
    name = f"bench.{aggregatetype.capitalize()}"

    @dataclass(frozen=True, slots=True, kw_only=True)
    class Work:
        n: int

        __packhorse__: ClassVar[MessageType] = MessageType(
            type=name,
            version=1,
            namespace=namespace,
            aggregatetype=aggregatetype,
            schema='{"type":"record","name":"' + name + '","fields":[{"name":"n","type":"long"}]}',
        )

    return Work

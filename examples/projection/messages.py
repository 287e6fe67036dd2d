"""The event that the projection is made of, as `packhorse schemas generate` writes it."""

import os
from dataclasses import dataclass
from typing import ClassVar

from packhorse.core.message import MessageType

SCHEMA = '{"type":"record","name":"shop.Ordered","fields":[{"name":"customer","type":"string"},{"name":"cents","type":"long"}]}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Ordered:
    """A customer has ordered something; the key is the customer."""

    customer: str
    cents: int

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="shop.Ordered",
        version=1,
        namespace=os.environ.get("PACKHORSE_NAMESPACE", "shop"),
        aggregatetype="customer",
        schema=SCHEMA,
    )

"""Messages; made by `packhorse schemas generate`: change the schemas, then run it again."""

import datetime as dt
from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from packhorse.core.message import MessageType


class Shows(StrEnum):
    """Shows, as its schema has it."""

    USUAL = "USUAL"
    SLOW = "SLOW"
    IN_DOUBT = "IN_DOUBT"

    __avro__: ClassVar[str] = "airline.Shows"


@dataclass(frozen=True, slots=True, kw_only=True)
class PunctualityRequest:
    """
    Somebody wants a report of how late a carrier left, month by month.

    Attributes:
        carrier: Two letters of the airline.
        person: Who wants it. Personal data.
        closed_at: When the figures are closed; before that the report can't be made.
        shows: What is to be seen: a report as usual, one that takes long, or one of which nobody knows whether its letter was sent.
    """

    carrier: str
    person: str = field(repr=False)
    closed_at: dt.datetime
    shows: Shows = Shows.USUAL

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="airline.PunctualityRequest",
        version=1,
        namespace="airline",
        aggregatetype="reports",
        schema='{"type":"record","name":"airline.PunctualityRequest","fields":[{"name":"carrier","type":"string"},{"name":"person","type":"string","packhorse.personal":true},{"name":"closed_at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"shows","type":{"type":"enum","name":"airline.Shows","symbols":["USUAL","SLOW","IN_DOUBT"]},"default":"USUAL"}]}',
    )

"""Messages; made by `packhorse schemas generate`: change the schemas, then run it again."""

from dataclasses import dataclass, field
from enum import StrEnum
from typing import ClassVar

from packhorse.core.message import MessageType


class Shows(StrEnum):
    """Shows, as its schema has it."""

    USUAL = "USUAL"
    SLOW = "SLOW"
    FAILS = "FAILS"

    __avro__: ClassVar[str] = "reports.Shows"


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportRequest:
    """
    Somebody wants a report of what was sold in a year.

    Attributes:
        title: What they call it.
        person: Who wants it. Personal data.
        year: Of the sales.
        shows: What the example is to show: a report as usual, one that takes long, or one that can't be made.
    """

    title: str
    person: str = field(repr=False)
    year: int
    shows: Shows = Shows.USUAL

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="reports.ReportRequest",
        version=1,
        namespace="reports",
        aggregatetype="requests",
        schema='{"type":"record","name":"reports.ReportRequest","fields":[{"name":"title","type":"string"},{"name":"person","type":"string","packhorse.personal":true},{"name":"year","type":"int"},{"name":"shows","type":{"type":"enum","name":"reports.Shows","symbols":["USUAL","SLOW","FAILS"]},"default":"USUAL"}]}',
    )

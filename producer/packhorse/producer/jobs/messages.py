"""Messages; made by `packhorse schemas generate`: change the schemas, then run it again."""

from dataclasses import dataclass
from typing import ClassVar

from packhorse.core.message import MessageType


@dataclass(frozen=True, slots=True, kw_only=True)
class JobReference:
    """
    A job waits for a worker. What it is to do lies in the job's row, in the database that accepted it.

    Attributes:
        id: The job's id, and the message's.
        type: Type of the job's input.
        version: Version of the schema of the job's input.
    """

    id: str
    type: str
    version: int

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="packhorse.JobReference",
        version=1,
        namespace="packhorse",
        aggregatetype="job",
        schema='{"type":"record","name":"packhorse.JobReference","fields":[{"name":"id","type":"string"},{"name":"type","type":"string"},{"name":"version","type":"int"}]}',
    )

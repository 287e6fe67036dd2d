"""Messages; made by `packhorse schemas generate`: change the schemas, then run it again."""

import datetime as dt
from dataclasses import dataclass
from typing import ClassVar

from packhorse.core.message import MessageType


@dataclass(frozen=True, slots=True, kw_only=True)
class NeedsPerson:
    """
    Messages of one group of failures wait in quarantine for a person. It holds nothing of any message.

    Attributes:
        print: Names the group of failures, see packhorse quarantine group.
        group: Consumer group whose handler failed.
        topic: Source topic of the messages.
        message_type: Type of the messages.
        reason: Reason code.
        site: Class, code and place of the error, without its text.
        count: Messages that wait.
        first_at: When the first came.
        last_at: When the last came.
        contact: Who is to be told; null when nobody is named.
    """

    print: str
    group: str
    topic: str
    message_type: str | None = None
    reason: str
    site: str
    count: int
    first_at: dt.datetime
    last_at: dt.datetime
    contact: str | None = None

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="packhorse.NeedsPerson",
        version=1,
        namespace="packhorse",
        aggregatetype="packhorse-notice",
        schema='{"type":"record","name":"packhorse.NeedsPerson","fields":[{"name":"print","type":"string"},{"name":"group","type":"string"},{"name":"topic","type":"string"},{"name":"message_type","type":["null","string"],"default":null},{"name":"reason","type":"string"},{"name":"site","type":"string"},{"name":"count","type":"long"},{"name":"first_at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"last_at","type":{"type":"long","logicalType":"timestamp-micros"}},{"name":"contact","type":["null","string"],"default":null}]}',
    )

"""Which rows may be handed to the client: their topic is there, may be written to, and takes them."""

from collections.abc import Mapping

from confluent_kafka import KafkaException

from packhorse.core.errors import SettingsError
from packhorse.core.naming import topic_name
from packhorse.relay.holds import Fault
from packhorse.relay.kafka.topics import Refused, Topic, Topics
from packhorse.relay.model import AGGREGATEID, AGGREGATETYPE, FIRST_HEADER, PAYLOAD, WITHHELD, Row
from packhorse.relay.refusals import HEADER, IMPOSSIBLE, REFUSED, TOO_LARGE, Blame, Refusal, fault_of, judged

_OVERHEAD = 512
"""Bytes of a record and its batch beside key, value and texts of headers, at most."""
_LARGEST_HEADERS = 64 * 1024


def _size(row: Row) -> int:
    """Return about how many bytes the record of *row* takes, rather too many than too few."""
    texts = [text for text in (row[AGGREGATEID], *row[FIRST_HEADER:WITHHELD]) if text is not None]
    return _OVERHEAD + len(row[PAYLOAD] or b"") + sum(len(text.encode()) for text in texts)


def _headers_are_texts(row: Row) -> bool:
    try:
        return all(value is None or value.encode() is not None for value in row[FIRST_HEADER:WITHHELD])
    except (AttributeError, ValueError):
        return False


class Gate:
    """
    Look at rows before they go; asks the broker about a topic at its first row, and again after anything was wrong with it.

    Attributes:
        sure: For each aggregate type that was looked at: its topic, and the payload size up to which nobody need count headers.
        topics: What the broker said about each.
        smallest: The smallest limit of the topics looked at since the start, in bytes.
    """

    def __init__(self, topics: Topics, *, namespace: str, largest: int) -> None:
        """Look at topics of *namespace*; *largest* is the client's own limit of a record, in bytes."""
        self._asked = topics
        self._namespace = namespace
        self._largest = largest
        self.sure: dict[str, tuple[str, int]] = {}
        self.topics: dict[str, Topic] = {}
        self.smallest = largest

    def partitions(self) -> Mapping[str, int]:
        """Return how many the topic of each aggregate type has."""
        return {name: len(topic.in_sync) for name, topic in self.topics.items()}

    def forget(self) -> None:
        """Ask about every topic again."""
        self.sure.clear()
        self.topics.clear()

    def passed(self, row: Row) -> str | Fault:
        """
        Return the topic of *row* when it takes the row; else what is wrong.

        Raises:
            BrokerUnavailable: The broker does not say.
        """
        aggregatetype = row[AGGREGATETYPE]
        try:
            name = topic_name(self._namespace, aggregatetype)
        except SettingsError as error:
            return self._fault(row, IMPOSSIBLE, str(error))
        topic = self.topics.get(aggregatetype) or self._asked.described([name])[name]
        if isinstance(topic, Refused):
            return self._fault(row, topic.refusal, topic.said)
        limit = min(topic.limit, self._largest)
        try:
            size = _size(row)
        except (AttributeError, ValueError, TypeError) as error:
            return self._unfit(row, error)
        if size > limit:
            whose = (
                "the topic's max.message.bytes" if limit == topic.limit else "the client's message.max.bytes"
            )
            return self._fault(row, TOO_LARGE, f"{size} bytes with key and headers, {whose} is {limit}")
        self.topics[aggregatetype] = topic
        self.sure[aggregatetype] = name, limit - _LARGEST_HEADERS
        self.smallest = min(self.smallest, limit)
        return name

    def refused(self, row: Row, error: Exception) -> Fault | None:
        """Return whose fault it is that the client does not take *row*; None: nobody's, the client is beyond use."""
        if not isinstance(error, KafkaException):
            return self._unfit(row, error)
        cause = error.args[0]
        refusal = judged(cause.name())
        if refusal.blame is Blame.NOBODY:
            return None
        return self._fault(row, refusal, f"{cause.name()} ({cause.str()})")

    def _unfit(self, row: Row, error: Exception) -> Fault:
        """Return the fault of a value that no record can have; the error's text may quote it."""
        refusal = REFUSED if _headers_are_texts(row) else HEADER
        return self._fault(row, refusal, f"the client does not take it ({type(error).__name__})")

    def _fault(self, row: Row, refusal: Refusal, said: str) -> Fault:
        self.sure.pop(row[AGGREGATETYPE], None)
        self.topics.pop(row[AGGREGATETYPE], None)
        return fault_of(refusal, row, topic=f"{self._namespace}.{row[AGGREGATETYPE]}", said=said)

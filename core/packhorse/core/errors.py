"""
The one tree of errors: whose fault it is, whether trying again can help, and what to do next.

    PackhorseError
    ├── UsageError              a person's or a program's mistake, found before anything was done
    │   ├── SettingsError       a setting is missing, of the wrong form, or refused by name
    │   ├── InvalidMessage      a field of a message breaks its rule
    │   │   ├── PayloadTooLarge the encoded payload is over the limit
    │   │   ├── ValueMismatch   a value does not fit its schema
    │   │   └── RequestKeyConflict  the request key stands for a job with another input
    │   ├── SchemaError         a schema is broken, incompatible or unknown to the tables
    │   │   └── SchemaNotRegistered
    │   ├── NotReady            a table, topic, right or migration is missing
    │   └── UnknownId           an id that somebody gave is not known here
    ├── InfrastructureError     broker, database or registry; never counted against a message
    │   ├── DatabaseUnavailable
    │   ├── BrokerUnavailable
    │   └── RegistryUnavailable
    ├── MessageFault            the message itself can't be handled; it goes to quarantine with `reason`
    │   ├── Undecodable
    │   ├── UnknownSchema
    │   └── UnknownType
    ├── Forbidden               the person has not the right for the act, or is not known
    │   └── NotSignedIn
    ├── OwnershipLost           somebody else owns the shard, lease, partition or row by now
    │   └── AlreadyDone         the same form was sent before, and what it asks for was done then
    └── KeysLocked              another transaction holds a key that this one asked for late
"""

from typing import ClassVar
from uuid import UUID


class PackhorseError(Exception):
    """
    Be the root of all that Packhorse raises on purpose.

    Attributes:
        retryable: True when the same call may succeed later without anybody changing anything.
    """

    retryable: ClassVar[bool] = False


class UsageError(PackhorseError):
    """Say that the caller can mend this; nothing was done."""


class SettingsError(UsageError):
    """Name a setting, its value (never a secret's) and what is allowed."""


class InvalidMessage(UsageError):
    """Name the field of a message that breaks its rule."""


class PayloadTooLarge(InvalidMessage):
    """Name the size and the limit, in bytes."""


class ValueMismatch(InvalidMessage):
    """
    Name the path of the field, what was given and what the schema allows.

    Attributes:
        path: Dotted path from the record, list positions and map keys included.
        allowed: What the schema allows there; holds nothing of what was given.
    """

    def __init__(self, text: str, *, path: str, allowed: str = "") -> None:
        super().__init__(text)
        self.path = path
        self.allowed = allowed


class RequestKeyConflict(InvalidMessage):
    """
    Name the job that a request key stands for, and the one of another input that came with the same key; nothing was written.

    Attributes:
        existing: Id of the job that was submitted before, or earlier in the same call.
        refused: Id that the other would have had.
    """

    def __init__(self, text: str, *, existing: UUID, refused: UUID) -> None:
        super().__init__(text)
        self.existing = existing
        self.refused = refused


class SchemaError(UsageError):
    """Name the subject, the version and the rule that a schema breaks."""


class SchemaNotRegistered(SchemaError):
    """Name the subject and version whose id is not in the database's table yet."""


class NotReady(UsageError):
    """Name the table, topic, right or migration that is missing, and the command that makes it."""


class UnknownId(UsageError):
    """Name an id that is not known here, and the command that lists those that are."""


class InfrastructureError(PackhorseError):
    """Say that something underneath is away; pause, never blame a message."""

    retryable = True


class DatabaseUnavailable(InfrastructureError):
    """The database does not answer, or ended the connection."""


class BrokerUnavailable(InfrastructureError):
    """The broker does not answer, or refuses for now."""


class RegistryUnavailable(InfrastructureError):
    """The schema registry does not answer in time, or answers that it can't now."""


class MessageFault(PackhorseError):
    """
    Say that this message can't be handled, whoever tries and however often.

    Attributes:
        reason: Reason code that quarantine, headers and metrics carry: lower case, hyphens.
    """

    reason: ClassVar[str] = "fault"


class Undecodable(MessageFault):
    """The bytes are no Avro of the schema that they name."""

    reason = "undecodable"


class UnknownSchema(MessageFault):
    """The registry says clearly that it does not know the schema id."""

    reason = "unknown-schema"


class UnknownType(MessageFault):
    """No handler is registered for the message's type."""

    reason = "unknown-type"


class Forbidden(PackhorseError):
    """Name the right that the person has not, or that they have none here, and who can give it; nothing was done."""


class NotSignedIn(Forbidden):
    """Say that nobody is there whom we know: a token is missing, unknown or expired; nothing was done."""


class OwnershipLost(PackhorseError):
    """Somebody else owns what this process worked on; what it remembers is void."""


class AlreadyDone(OwnershipLost):
    """Say that the same form was sent before, and what it asks for was done then; nothing was done now."""


class KeysLocked(PackhorseError):
    """A key is locked by another transaction; roll back and try again, taking all keys at the start."""

    retryable = True

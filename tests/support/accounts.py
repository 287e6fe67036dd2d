"""Messages of a small bank, as `packhorse schemas generate` would write them."""

from dataclasses import dataclass
from typing import ClassVar

from packhorse.core.message import MessageType

_OPENED = """{"type": "record", "name": "AccountOpened", "namespace": "bank", "fields": [
    {"name": "account", "type": "string"},
    {"name": "owner", "type": "string", "packhorse.personal": true},
    {"name": "limit", "type": "int"}]}"""
_MOVED = """{"type": "record", "name": "AmountMoved", "namespace": "bank", "fields": [
    {"name": "account", "type": "string"},
    {"name": "amount", "type": "long"}]}"""


@dataclass(frozen=True, slots=True, kw_only=True)
class AccountOpened:
    """An account was opened."""

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="bank.AccountOpened", version=1, namespace="bank", aggregatetype="account", schema=_OPENED
    )
    account: str
    owner: str
    limit: int


@dataclass(frozen=True, slots=True, kw_only=True)
class AmountMoved:
    """An amount was moved; a second kind on the same topic."""

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="bank.AmountMoved", version=2, namespace="bank", aggregatetype="account", schema=_MOVED
    )
    account: str
    amount: int

"""Payloads for eyes: decoded by the schema that the registry knows, with every personal field masked."""

import math
from collections.abc import Callable
from typing import Any

from packhorse.core.errors import MessageFault, RegistryUnavailable
from packhorse.schemas.decode import Decoder, Plain, SchemaSource
from packhorse.schemas.redaction import masked, shown


class RegistryPayloads:
    """Be the console's `Payloads` over a source of schemas."""

    def __init__(self, source: SchemaSource) -> None:
        self.decoder = Decoder(source)

    def masked(self, payload: bytes) -> tuple[object | None, str | None]:
        """Return the value with every personal field masked, or None and why it can't be shown."""
        return self._told(payload, lambda plain: masked(plain.value, plain.schema))

    def whole(self, payload: bytes) -> tuple[object | None, str | None]:
        """Return the value with personal fields as they are, or None and why it can't be shown; for who may see them."""
        return self._told(payload, lambda plain: shown(plain.value))

    def fault(self, payload: bytes) -> str | None:
        """Return the reason code for which *payload* can't be decoded; None: it can. Raises RegistryUnavailable."""
        try:
            self.decoder.plain(payload)
        except MessageFault as error:
            return error.reason
        return None

    def _told(self, payload: bytes, shown_as: Callable[[Plain], object]) -> tuple[object | None, str | None]:
        try:
            plain = self.decoder.plain(payload)
        except (MessageFault, RegistryUnavailable) as error:
            return None, f"not decoded: {error}"
        return _finite(shown_as(plain)), None


def _finite(value: Any) -> Any:
    """Return *value* with NaN and infinities as text: JSON has no numbers for them."""
    match value:
        case float() if not math.isfinite(value):
            return str(value)
        case dict():
            return {name: _finite(item) for name, item in value.items()}
        case list():
            return [_finite(item) for item in value]
        case _:
            return value

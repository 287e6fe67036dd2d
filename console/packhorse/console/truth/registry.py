"""Payloads for eyes: decoded by the schema that the registry knows, with every personal field masked."""

import math
from typing import Any

from packhorse.core.errors import MessageFault, RegistryUnavailable
from packhorse.schemas.decode import Decoder, SchemaSource
from packhorse.schemas.redaction import masked, shown


class RegistryPayloads:
    """Be the console's `Payloads` over a source of schemas."""

    def __init__(self, source: SchemaSource) -> None:
        self.decoder = self._decoder = Decoder(source)

    def masked(self, payload: bytes) -> tuple[object | None, str | None]:
        """Return the value with every personal field masked, or None and why it can't be shown."""
        try:
            plain = self._decoder.plain(payload)
        except (MessageFault, RegistryUnavailable) as error:
            return None, f"not decoded: {error}"
        return _finite(masked(plain.value, plain.schema)), None

    def whole(self, payload: bytes) -> tuple[object | None, str | None]:
        """Return the value with personal fields as they are, or None and why it can't be shown; for who may see them."""
        try:
            plain = self._decoder.plain(payload)
        except (MessageFault, RegistryUnavailable) as error:
            return None, f"not decoded: {error}"
        return _finite(shown(plain.value)), None

    def fault(self, payload: bytes) -> str | None:
        """Return the reason code for which *payload* can't be decoded; None: it can. Raises RegistryUnavailable."""
        try:
            self._decoder.plain(payload)
        except MessageFault as error:
            return error.reason
        return None


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

"""
Avro: registration, framing, compatibility, generated message classes, and what is personal in them.

The names below are loaded when they are first used, so that importing the part costs nothing.
"""

from importlib import import_module
from typing import TYPE_CHECKING, Any, Final

if TYPE_CHECKING:
    from packhorse.schemas.codec import Codec, codec_of, encode_message
    from packhorse.schemas.decode import Decoder, Plain, SchemaSource
    from packhorse.schemas.framing import split
    from packhorse.schemas.redaction import masked, personal_paths
    from packhorse.schemas.registry import Registry
    from packhorse.schemas.text import fingerprint

__all__ = [
    "Codec",
    "Decoder",
    "Plain",
    "Registry",
    "SchemaSource",
    "codec_of",
    "encode_message",
    "fingerprint",
    "masked",
    "personal_paths",
    "split",
]

_HOMES: Final = {
    "Codec": "codec",
    "Decoder": "decode",
    "Plain": "decode",
    "Registry": "registry",
    "SchemaSource": "decode",
    "codec_of": "codec",
    "encode_message": "codec",
    "fingerprint": "text",
    "masked": "redaction",
    "personal_paths": "redaction",
    "split": "framing",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_HOMES[name]}"), name)
    globals()[name] = value
    return value

"""Check at the start that a message class fits: its own schema, and what the registry holds of its subject."""

from collections.abc import Mapping
from typing import Protocol

from packhorse.core.errors import SchemaError, SchemaNotRegistered
from packhorse.core.message import TypedMessage
from packhorse.schemas.binding import message_type
from packhorse.schemas.codec import codec_of
from packhorse.schemas.parse import parse_schema
from packhorse.schemas.resolution import Resolver
from packhorse.schemas.text import wire_text


class SubjectSource(Protocol):
    """Where the versions of a subject come from; `packhorse.schemas.registry.Registry` is one."""

    def versions_of(self, subject: str) -> Mapping[int, str]:
        """
        Return the schemas of *subject* by the source's own count of versions; empty when there is no such subject.

        Raises:
            RegistryUnavailable: No clear answer could be had.
        """


def check_fit(cls: type[TypedMessage], source: SubjectSource) -> None:
    """
    Check that *cls* can handle its subject; blocks on the network, bounded for each version.

    Versions that came after the one that *cls* was made from are not looked at: they may be registered long before
    anybody writes them, and must not keep running readers from starting again.

    Raises:
        SchemaNotRegistered: The subject, or the version that *cls* was made from, is not there; names both.
        SchemaError: *cls* does not fit the schema that it carries, or can't read an earlier version; names subject,
            version, field and rule.
        RegistryUnavailable: No clear answer could be had.
    """
    codec, about = codec_of(cls), message_type(cls)
    wanted = wire_text(codec.schema)
    for version, text in sorted(source.versions_of(about.subject).items()):
        writer = parse_schema(text)
        resolver = Resolver(writer, codec.schema, codec.classes)
        resolver.root()
        if found := [one for one in resolver.incompatibilities if one.always]:
            raise SchemaError(
                f"{about.subject}: {cls.__name__}, made from v{about.version}, can't read the registry's version {version}: "
                f"{found[0].path or 'the record'}: {found[0].text} (rule {found[0].rule.value}); "
                "make the class from a version that can, by `packhorse schemas generate`"
            )
        if wire_text(writer) == wanted:
            return
    raise SchemaNotRegistered(
        f"{about.subject} v{about.version}, which {cls.__name__} was made from, is not in the registry; "
        "run `packhorse schemas register`"
    )

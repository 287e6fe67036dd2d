"""Merge a user's librdkafka properties with those that a promise rests on; refuse by name what would break one."""

from collections.abc import Collection, Mapping

from packhorse.core.errors import SettingsError

Property = str | int | float | bool

ALIASES: Mapping[str, str] = {
    "max.in.flight": "max.in.flight.requests.per.connection",
    "request.required.acks": "acks",
    "delivery.timeout.ms": "message.timeout.ms",
    "message.send.max.retries": "retries",
    "metadata.broker.list": "bootstrap.servers",
    "auto.commit.enable": "enable.auto.commit",
}
"""Second names that the client takes for the same property."""


def merged(
    user: Mapping[str, Property],
    ours: Mapping[str, Property],
    *,
    bootstrap_servers: str,
    sasl_password: str | None,
    part: str,
    reserved: Collection[str] = (),
) -> dict[str, Property]:
    """
    Return the client's configuration: *user*'s properties, then *ours*, which nobody may set otherwise.

    Properties in *reserved* may not be set at all: the part sets them by itself where it needs them.

    Raises:
        SettingsError: *user* sets one of *ours* to another value, by whatever name, or one of *reserved*; names it, the value
            and the one that is needed.
    """
    needed = {**ours, "bootstrap.servers": bootstrap_servers}
    for name, value in user.items():
        meant = _meant(name)
        if meant == "sasl.password":
            raise SettingsError(
                "kafka_properties sets sasl.password; pass it as PACKHORSE_KAFKA_SASL_PASSWORD or …_FILE"
            )
        if meant in reserved:
            raise SettingsError(
                f"kafka_properties sets {name}={value}; the {part} sets {meant} by itself where it is needed: "
                "take the setting out"
            )
        if meant in needed and _text(value) != _text(needed[meant]):
            raise SettingsError(
                f"kafka_properties sets {name}={value}; the {part} needs {meant}={_text(needed[meant])}: take the setting out"
            )
    password = {} if sasl_password is None else {"sasl.password": sasl_password}
    return {
        **{name: value for name, value in user.items() if _meant(name) not in needed},
        **needed,
        **password,
    }


def _meant(name: str) -> str:
    """Return the property that the client takes *name* for: it knows aliases, and `topic.` before a topic's property."""
    plain = name.removeprefix("topic.")
    return ALIASES.get(plain, name if plain.startswith(("metadata.", "blacklist")) else plain)


def _text(value: Property) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

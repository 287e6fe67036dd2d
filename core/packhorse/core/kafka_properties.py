"""Merge a user's librdkafka properties with those that a promise rests on; refuse by name what would break one."""

from collections.abc import Mapping

from packhorse.core.errors import SettingsError

Property = str | int | float | bool


def merged(
    user: Mapping[str, Property],
    ours: Mapping[str, Property],
    *,
    bootstrap_servers: str,
    sasl_password: str | None,
    part: str,
) -> dict[str, Property]:
    """
    Return the client's configuration: *user*'s properties, then *ours*, which nobody may set otherwise.

    Raises:
        SettingsError: *user* sets one of *ours* to another value; names it, the value and the one that is needed.
    """
    needed = {**ours, "bootstrap.servers": bootstrap_servers}
    for name, value in user.items():
        if name == "sasl.password":
            raise SettingsError(
                "kafka_properties sets sasl.password; pass it as PACKHORSE_KAFKA_SASL_PASSWORD or …_FILE"
            )
        if name in needed and _text(value) != _text(needed[name]):
            raise SettingsError(
                f"kafka_properties sets {name}={value}; the {part} needs {name}={_text(needed[name])}: take the setting out"
            )
    password = {} if sasl_password is None else {"sasl.password": sasl_password}
    return {**user, **needed, **password}


def _text(value: Property) -> str:
    return str(value).lower() if isinstance(value, bool) else str(value)

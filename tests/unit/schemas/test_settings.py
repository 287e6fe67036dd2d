"""Where settings come from, and how a mistake in one is told: by name, value and what is allowed; a secret never."""

from pathlib import Path
from typing import Any, ClassVar

import pytest
from pydantic import Field, SecretStr

from packhorse.core.errors import SettingsError
from packhorse.schemas.options import RegisterSettings, SchemasSettings
from packhorse.schemas.settings import PartSettings
from packhorse.schemas.systems import DatabaseSettings, KafkaSettings, NamespaceSettings, RegistrySettings


class Some(PartSettings, DatabaseSettings, KafkaSettings, RegistrySettings, NamespaceSettings):
    """A part that has everything."""

    section: ClassVar[str] = "some"

    limit: int = Field(default=10, ge=1, le=100)
    token: SecretStr | None = None


NEEDED = {
    "PACKHORSE_DATABASE_URL": "postgresql://db/app",
    "PACKHORSE_KAFKA_BOOTSTRAP_SERVERS": "kafka:9092",
    "PACKHORSE_REGISTRY_URL": "http://registry:8081/",
    "PACKHORSE_NAMESPACE": "shop",
}


def load(toml: str = "", /, *, tmp_path: Path, flags: dict[str, Any] | None = None, **environ: str) -> Some:
    file = tmp_path / "packhorse.toml"
    file.write_text(toml, encoding="utf-8")
    return Some.load(flags, environ={**NEEDED, **environ}, file=file)


def refused(toml: str = "", /, **more: Any) -> str:
    with pytest.raises(SettingsError) as caught:
        load(toml, **more)
    return str(caught.value)


def test_flags_come_before_the_environment_before_files_before_the_default(tmp_path: Path) -> None:
    secret = tmp_path / "limit"
    secret.write_text("4\n")
    toml = "[some]\nlimit = 5"
    assert load(tmp_path=tmp_path).limit == 10
    assert load(toml, tmp_path=tmp_path).limit == 5
    assert load(toml, tmp_path=tmp_path, PACKHORSE_SOME_LIMIT_FILE=str(secret)).limit == 4
    both: Any = {"PACKHORSE_SOME_LIMIT": "3", "PACKHORSE_SOME_LIMIT_FILE": str(secret)}
    assert load(toml, tmp_path=tmp_path, **both).limit == 3
    assert load(toml, tmp_path=tmp_path, flags={"limit": 2}, **both).limit == 2
    assert load(toml, tmp_path=tmp_path, flags={"limit": None}, **both).limit == 3, (
        "None is a flag that was not given"
    )


def test_shared_settings_stand_at_the_top_of_the_file(tmp_path: Path) -> None:
    file = tmp_path / "some.toml"
    file.write_text('namespace = "top"\nregistry_timeout = 2\n[some]\nlimit = 7\n[relay]\nunknown = 1\n')
    environ = {**NEEDED, "PACKHORSE_CONFIG": str(file)}
    del environ["PACKHORSE_NAMESPACE"]
    settings = Some.load(environ=environ)
    assert (settings.namespace, settings.registry_timeout, settings.limit) == ("top", 2.0, 7)


def test_settings_are_frozen(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="frozen"):
        load(tmp_path=tmp_path).limit = 5


MISTAKES: list[tuple[str, dict[str, str], dict[str, Any], list[str]]] = [
    ("", {"PACKHORSE_SOME_LIMIT": "500"}, {}, ["PACKHORSE_SOME_LIMIT = '500'", "less than or equal to 100"]),
    ("", {"PACKHORSE_SOME_LIMIT": "many"}, {}, ["PACKHORSE_SOME_LIMIT = 'many'", "integer"]),
    ("[some]\nlimit = 0", {}, {}, ["[some] limit in the settings file = '0'", "greater than or equal to 1"]),
    ("", {}, {"limit": -1}, ["flag --limit = '-1'", "greater than or equal to 1"]),
    ("[some]\nlimt = 5", {}, {}, ["[some] limt in the settings file is not known; known are limit, token"]),
    (
        "databse_url = 5",
        {},
        {},
        ["databse_url at the top of the settings file is not known; known there are database_schema"],
    ),
    (
        "",
        {"PACKHORSE_SOME_LIMT": "5"},
        {},
        [
            "PACKHORSE_SOME_LIMT is set and not known",
            "did you mean PACKHORSE_SOME_LIMIT?",
            "PACKHORSE_SOME_TOKEN",
        ],
    ),
    ("", {"PACKHORSE_SOME_QQ_FILE": "5"}, {}, ["PACKHORSE_SOME_QQ_FILE is set and not known"]),
    ("limit = 5", {}, {}, ["limit at the top of the settings file is not known"]),
    ("some = 5", {}, {}, ["some in the settings file is no table; write [some]"]),
    ("[some", {}, {}, ["is no TOML"]),
    ("[relays]\nlease = 5", {}, {}, ["table [relays] in the settings file is not known", "[relay]"]),
    ("[kafka_propertis]\na = 5", {}, {}, ["[kafka_propertis]", "[kafka_properties]"]),
    (
        "",
        {"PACKHORSE_NAMESPACE": " "},
        {},
        ["PACKHORSE_NAMESPACE is set and empty; give it a value, or unset it"],
    ),
    ("", {"PACKHORSE_SOME_LIMIT_FILE": ""}, {}, ["PACKHORSE_SOME_LIMIT_FILE is set and empty"]),
    ("", {"PACKHORSE_DATABASE_SCHEMA": "Pack"}, {}, ["PACKHORSE_DATABASE_SCHEMA = 'Pack'", "a-z 0-9 _"]),
    ("", {"PACKHORSE_NAMESPACE": "a b"}, {}, ["PACKHORSE_NAMESPACE = 'a b'", "A-Z a-z 0-9 . _ -"]),
    (
        "",
        {"PACKHORSE_REGISTRY_URL": "registry:8081"},
        {},
        ["PACKHORSE_REGISTRY_URL = 'registry:8081'", "http://registry:8081"],
    ),
    ("", {"PACKHORSE_REGISTRY_TIMEOUT": "0"}, {}, ["PACKHORSE_REGISTRY_TIMEOUT = '0'", "greater than 0"]),
    (
        "",
        {"PACKHORSE_SOME_LIMIT_FILE": "/no/such/file"},
        {},
        ["PACKHORSE_SOME_LIMIT_FILE=/no/such/file", "No such file"],
    ),
    (
        "",
        {"PACKHORSE_KAFKA_PROPERTIES": "security.protocol=SSL"},
        {},
        ["PACKHORSE_KAFKA_PROPERTIES", "JSON object"],
    ),
    ("", {"PACKHORSE_KAFKA_PROPERTIES": '["a"]'}, {}, ["PACKHORSE_KAFKA_PROPERTIES", "JSON object"]),
    (
        "",
        {"PACKHORSE_KAFKA_PROPERTIES": '{"a": {"b": 1}}'},
        {},
        ["PACKHORSE_KAFKA_PROPERTIES: a is not allowed; text, a number, true or false is needed"],
    ),
]


def test_variables_of_others_are_let_be(tmp_path: Path) -> None:
    assert load(tmp_path=tmp_path, PACKHORSE_RELAY_POOL="5", PACKHORSE_DATABASE_PASSWORD="x").limit == 10


@pytest.mark.parametrize(("toml", "environ", "flags", "told"), MISTAKES)
def test_a_mistake_names_setting_value_and_what_is_allowed(
    tmp_path: Path, toml: str, environ: dict[str, str], flags: dict[str, Any], told: list[str]
) -> None:
    text = refused(toml, tmp_path=tmp_path, flags=flags, **environ)
    for part in told:
        assert part in text


def test_all_that_is_missing_is_named_with_the_ways_to_set_it(tmp_path: Path) -> None:
    with pytest.raises(SettingsError) as caught:
        Some.load(environ={"PACKHORSE_CONFIG": str(tmp_path / "packhorse.toml")}, file=_empty(tmp_path))
    for name in NEEDED:
        assert (
            f"{name} is not set; set it, {name}_FILE or {name.removeprefix('PACKHORSE_').lower()} in packhorse.toml"
            in str(caught.value)
        )


def _empty(tmp_path: Path) -> Path:
    file = tmp_path / "empty.toml"
    file.write_text("")
    return file


def test_a_settings_file_that_was_named_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="name a readable file in PACKHORSE_CONFIG"):
        Some.load(environ={**NEEDED, "PACKHORSE_CONFIG": str(tmp_path / "gone.toml")})


def test_kafka_properties_are_json_in_the_environment_and_a_table_in_the_file(tmp_path: Path) -> None:
    text = '{"security.protocol": "SASL_SSL", "socket.timeout.ms": 5000, "enable.x": true}'
    wanted = {"security.protocol": "SASL_SSL", "socket.timeout.ms": 5000, "enable.x": True}
    assert load(tmp_path=tmp_path, PACKHORSE_KAFKA_PROPERTIES=text).kafka_properties == wanted
    toml = '[kafka_properties]\n"security.protocol" = "SASL_SSL"\n"socket.timeout.ms" = 5000\n"enable.x" = true\n'
    assert load(toml, tmp_path=tmp_path).kafka_properties == wanted


SECRET = "s3cr3t-w0rd"


@pytest.mark.case("X-08")
def test_no_secret_is_shown_by_settings(tmp_path: Path) -> None:
    """Fails when a password is a plain text field, or properties (which may hold one) are part of the repr."""
    file = tmp_path / "password"
    file.write_text(f"{SECRET}\n")
    settings = load(
        tmp_path=tmp_path,
        PACKHORSE_DATABASE_URL=f"postgresql://app:{SECRET}@db/app",
        PACKHORSE_KAFKA_PROPERTIES=f'{{"ssl.key.password": "{SECRET}"}}',
        PACKHORSE_KAFKA_SASL_PASSWORD_FILE=str(file),
        PACKHORSE_REGISTRY_USER="reader",
        PACKHORSE_REGISTRY_PASSWORD=SECRET,
        PACKHORSE_SOME_TOKEN=SECRET,
    )
    assert SECRET not in repr(settings)
    assert SECRET not in str(settings)
    assert settings.kafka_sasl_password is not None
    assert settings.kafka_sasl_password.get_secret_value() == SECRET, (
        "without the line break at the end of the file"
    )


LEAKS: list[dict[str, str]] = [
    {"PACKHORSE_REGISTRY_URL": f"http://reader:{SECRET}@registry:8081"},
    {"PACKHORSE_REGISTRY_URL": f"http://{SECRET}@registry:8081"},
    {"PACKHORSE_KAFKA_PROPERTIES": f'{{"ssl.key.password": ["{SECRET}"]}}'},
    {"PACKHORSE_KAFKA_PROPERTIES": f"ssl.key.password={SECRET}"},
    {"PACKHORSE_KAFKA_PROPERTIES": f'{{"{SECRET}": '},
]


@pytest.mark.case("X-08")
@pytest.mark.parametrize("environ", LEAKS)
def test_no_error_of_settings_repeats_a_secret(tmp_path: Path, environ: dict[str, str]) -> None:
    """Fails when `_explain` prints the value of a setting that may hold a secret."""
    assert SECRET not in refused(tmp_path=tmp_path, **environ)


@pytest.mark.parametrize(
    "flags",
    [
        {"database_url": f"postgresql://app:{SECRET}@db/app"},
        {"database_url": "postgresql://app:p@db/app"},
        {"database_url": "host=db password=p"},
        {"token": SECRET},
        {"token": "t"},
    ],
)
def test_a_secret_is_no_flag(tmp_path: Path, flags: dict[str, str]) -> None:
    text = refused(tmp_path=tmp_path, flags=flags)
    assert "the process list shows flags to everybody" in text
    assert SECRET not in text


def test_the_registrys_address_is_without_a_slash_at_its_end(tmp_path: Path) -> None:
    assert load(tmp_path=tmp_path).registry_url == "http://registry:8081"


def test_the_parts_own_settings(tmp_path: Path) -> None:
    file = tmp_path / "some.toml"
    file.write_text('[schemas]\navro_dir = "here"\nmessages_file = "m.py"\ncompatibility = "full"\n')
    settings = SchemasSettings.load(environ={}, file=file)
    assert (settings.avro_dir, settings.messages_file, settings.compatibility.value) == (
        Path("here"),
        Path("m.py"),
        "full",
    )
    assert SchemasSettings.load({"avro_dir": Path("there")}, environ={}, file=file).avro_dir == Path("there")
    with pytest.raises(
        SettingsError, match=r"PACKHORSE_SCHEMAS_COMPATIBILITY = 'none': .*'backward', 'forward' or 'full'"
    ):
        SchemasSettings.load(environ={"PACKHORSE_SCHEMAS_COMPATIBILITY": "none"}, file=file)
    assert RegisterSettings.load(environ=NEEDED, file=file).registry_url == "http://registry:8081"


def test_the_secrets_are_those_that_were_given(tmp_path: Path) -> None:
    """Fails when a secret that was not given counts as the text "None", which every log would then leave out."""
    assert load(tmp_path=tmp_path).secrets() == frozenset()
    assert load(tmp_path=tmp_path, PACKHORSE_SOME_TOKEN="t0ken").secrets() == {"t0ken"}

"""What each service is told: settings, commands, and the questions it is asked."""

import struct
from pathlib import Path
from uuid import UUID

import pytest
from hypothesis import given
from hypothesis import strategies as st

from packhorse.local import kafka, postgres
from packhorse.local.kafka import Broker, brokers_in, cluster_id_text, metadata_request
from packhorse.local.postgres import Database, forget_stale_pid_file, startup_message
from packhorse.local.registry import Registry

FOLDER = Path("/stack")


def broker(**given_: object) -> Broker:
    ports = {"kafka": 9092, "kafka_controller": 9093, "kafka_advertised": 9094}
    values = {
        "folder": FOLDER,
        "ports": ports,
        "java": Path("/java"),
        "jars": [Path("/a.jar"), Path("/b.jar")],
    }
    return Broker(cluster_id=UUID(int=1), **{**values, **given_})  # type: ignore[arg-type]


def test_a_broker_listens_on_the_loopback_address_alone() -> None:
    properties = broker().properties(data=Path("/data"))
    assert properties["listeners"] == "PLAINTEXT://127.0.0.1:9092,CONTROLLER://127.0.0.1:9093"
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092"
    assert properties["controller.quorum.voters"] == "1@127.0.0.1:9093"
    assert properties["log.dirs"] == "/data"
    assert properties["auto.create.topics.enable"] == "false"
    assert broker().port_names == ("kafka", "kafka_controller")


def test_an_advertised_port_is_a_further_listener_and_the_plain_one_stays() -> None:
    proxied = broker(advertised_port=7000)
    properties = proxied.properties(data=Path("/data"))
    assert properties["listeners"].endswith(",ADVERTISED://127.0.0.1:9094")
    assert properties["advertised.listeners"] == "PLAINTEXT://127.0.0.1:9092,ADVERTISED://127.0.0.1:7000"
    assert properties["listener.security.protocol.map"].endswith(",ADVERTISED:PLAINTEXT")
    assert proxied.port_names == ("kafka", "kafka_controller", "kafka_advertised")


def test_the_callers_broker_settings_win() -> None:
    assert broker(settings={"num.partitions": "9"}).properties(data=Path("/data"))["num.partitions"] == "9"


def test_a_broker_runs_on_exactly_the_pinned_jars() -> None:
    argv = broker().command().argv
    assert argv[argv.index("-cp") + 1] == "/a.jar:/b.jar"
    assert argv[-2:] == ("kafka.Kafka", "/stack/kafka/server.properties")


@given(st.uuids())
def test_a_cluster_id_is_22_url_safe_characters_and_never_reads_as_a_flag(identity: UUID) -> None:
    text = cluster_id_text(identity)
    assert len(text) == 22
    assert not text.startswith("-")


def test_the_metadata_request_states_its_own_length() -> None:
    (length,) = struct.unpack_from(">i", metadata_request())
    assert length == len(metadata_request()) - 4
    assert brokers_in(struct.pack(">iii", 0, 2, 7)) == 2


def test_postgres_keeps_its_durability() -> None:
    """Fails when somebody makes tests faster by switching off what the crash tests rely on."""
    for setting in ("fsync", "synchronous_commit", "full_page_writes"):
        assert setting not in postgres.BASE_SETTINGS


def test_the_callers_database_settings_win() -> None:
    database = Database(
        folder=FOLDER, home=FOLDER, ports={"postgres": 5}, binaries=FOLDER, settings={"max_connections": "3"}
    )
    assert database.server_settings()["max_connections"] == "3"
    assert database.server_settings()["port"] == "5"


def test_the_startup_message_states_its_own_length() -> None:
    length, protocol = struct.unpack_from(">ii", startup_message())
    assert length == len(startup_message())
    assert protocol == 3 << 16
    assert startup_message().endswith(b"\0\0")


@pytest.mark.parametrize(
    ("text", "stays"), [("1\n/data\n", False), ("999999999\n", True), ("", True), ("not a pid\n", True)]
)
def test_a_pid_file_of_another_program_is_deleted_and_any_other_left_to_postgres(
    tmp_path: Path, text: str, stays: bool
) -> None:
    if not Path("/proc/1/cmdline").exists():
        pytest.skip("only systems with /proc tell what a pid runs")
    (tmp_path / "postmaster.pid").write_text(text)
    forget_stale_pid_file(tmp_path)
    assert (tmp_path / "postmaster.pid").exists() == stays


def test_the_registrys_ids_outlive_a_restart() -> None:
    environment = Registry(
        folder=FOLDER, ports={"registry": 1, "registry_management": 2}, java=FOLDER, home=FOLDER
    ).environment()
    assert environment["APICURIO_DATASOURCE_URL"] == "jdbc:h2:file:/stack/registry/store;WRITE_DELAY=0"
    assert environment["QUARKUS_HTTP_HOST"] == environment["QUARKUS_MANAGEMENT_HOST"] == "127.0.0.1"


def test_a_broker_that_is_not_there_is_no_broker() -> None:
    assert kafka.broker_count("127.0.0.1", 1) == 0
    assert not postgres.takes_connections("127.0.0.1", 1)

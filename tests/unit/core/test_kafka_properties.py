"""Client properties: what a promise rests on can't be set otherwise."""

import pytest

from packhorse.core.errors import SettingsError
from packhorse.core.kafka_properties import Property, merged


def test_the_users_properties_stay_and_ours_are_added() -> None:
    made = merged(
        {"security.protocol": "SASL_SSL"},
        {"acks": "all"},
        bootstrap_servers="b:9092",
        sasl_password="x",
        part="relay",
    )

    assert made == {
        "security.protocol": "SASL_SSL",
        "acks": "all",
        "bootstrap.servers": "b:9092",
        "sasl.password": "x",
    }


def test_a_property_of_ours_may_be_repeated_with_the_value_it_has() -> None:
    made = merged(
        {"enable.idempotence": "true"},
        {"enable.idempotence": True},
        bootstrap_servers="b",
        sasl_password=None,
        part="relay",
    )

    assert made["enable.idempotence"] is True


@pytest.mark.case("P-03", "R-09")
@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("enable.auto.commit", True),
        ("enable.auto.commit", "true"),
        ("bootstrap.servers", "other"),
        ("auto.commit.enable", True),
        ("topic.auto.commit.enable", True),
        ("metadata.broker.list", "other"),
    ],
)
def test_a_property_that_breaks_a_promise_is_refused_by_name(name: str, value: str | bool) -> None:
    """Fails when ours are merged under the user's, or silently over them, or a second name of the same property slips through."""
    with pytest.raises(SettingsError, match=name):
        merged(
            {name: value},
            {"enable.auto.commit": False},
            bootstrap_servers="b",
            sasl_password=None,
            part="processor",
        )


def test_a_password_among_the_properties_is_refused_and_not_shown() -> None:
    with pytest.raises(SettingsError, match="PACKHORSE_KAFKA_SASL_PASSWORD") as caught:
        merged({"sasl.password": "hunter2"}, {}, bootstrap_servers="b", sasl_password=None, part="relay")

    assert "hunter2" not in str(caught.value)


@pytest.mark.case("R-09")
def test_a_property_that_the_part_sets_by_itself_is_refused_whatever_its_value() -> None:
    with pytest.raises(
        SettingsError, match=r"transactional\.id=mine; the relay sets transactional\.id by itself"
    ):
        merged(
            {"transactional.id": "mine"},
            {},
            bootstrap_servers="b",
            sasl_password=None,
            part="relay",
            reserved={"transactional.id"},
        )


def test_names_that_only_look_like_a_topics_property_stay() -> None:
    user: dict[str, Property] = {
        "topic.metadata.refresh.interval.ms": 5_000,
        "topic.compression.type": "zstd",
    }
    assert merged(user, {}, bootstrap_servers="b", sasl_password=None, part="relay") == {
        **user,
        "bootstrap.servers": "b",
    }

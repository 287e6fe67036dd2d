"""Secrets are taken out of texts of any form and length."""

import pytest

from packhorse.core.redaction import without_secrets


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (
            "see postgresql://app:s3@db, or 'kafka+tls://a:b@c'",
            "see postgresql://app:***@db, or 'kafka+tls://a:***@c'",
        ),
        ("(sasl.password=x) my_api_key: y", "(sasl.password=*** my_api_key: ***"),
        ('{"token": "abc", "n": 1}', '{"token": ***, "n": 1}'),
        ("tokens are fine", "tokens are fine"),
    ],
)
def test_what_looks_like_a_secret_is_blanked_out(text: str, expected: str) -> None:
    assert without_secrets(text) == expected


@pytest.mark.case("X-07")
@pytest.mark.parametrize("piece", ["x", "a.", "password", "http", "token ", "a://b:", "secret='", "é"])
def test_a_text_of_any_length_takes_no_more_than_its_length(piece: str) -> None:
    """
    Fails, by never ending, when each letter of a long word begins a search of the whole word: somebody's error with a document in
    it would hold the interpreter's lock for minutes, and with it every lane and the group.
    """
    text = piece * (1_000_000 // len(piece))
    assert len(without_secrets(text)) >= len(text) // 100

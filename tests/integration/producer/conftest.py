from collections.abc import Iterator

import pytest
from tests.support.bank import emptied, opened_bank, registered

from packhorse.local.settings import Endpoints


@pytest.fixture(scope="package")
def bank(stack: Endpoints, _template: str) -> Iterator[str]:
    with opened_bank(stack.database_url, _template) as url:
        yield url


@pytest.fixture
def unregistered(bank: str) -> str:
    """Provide the URL of an empty bank whose database knows no schema."""
    return emptied(bank)


@pytest.fixture
def url(unregistered: str) -> str:
    """Provide the URL of an empty bank."""
    return registered(unregistered)

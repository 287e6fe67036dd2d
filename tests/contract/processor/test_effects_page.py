"""The example of the page on outside effects runs, on the simulated tables."""

import re
from dataclasses import dataclass
from pathlib import Path
from typing import Any, ClassVar

import pytest
from tests.contract.processor.test_effects import AGAIN, YOURS, Run, Simulated, effects

from packhorse.core.message import MessageType

PAGE = Path(__file__).parents[3] / "docs/how-to/outside-effects.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class PaymentWanted:
    """The input of the page's job."""

    __packhorse__: ClassVar[MessageType] = MessageType(
        type="bank.PaymentWanted", version=1, namespace="bank", aggregatetype="payments", schema="{}"
    )
    account: str
    cents: int


class Bank:
    """The page's bank, which dies after its first transfer."""

    def __init__(self) -> None:
        self.transfers: dict[str, str] = {}

    def transfer(self, account: str, cents: int, *, idempotency_key: str, timeout: float) -> str:
        self.transfers[idempotency_key] = f"{account}/{cents}"
        raise KeyboardInterrupt

    def find(self, *, idempotency_key: str) -> str | None:
        return self.transfers.get(idempotency_key)


class Ctx:
    """What the page's job uses of its context."""

    def __init__(self, ground: Simulated, run: Run) -> None:
        self.effect = effects(ground, run).call


@pytest.mark.case("J-08")
def test_the_example_of_the_page_runs() -> None:
    (block,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    bank, ground = Bank(), Simulated()
    names: dict[str, Any] = {"bank": bank, "PaymentWanted": PaymentWanted}
    exec(compile(block, str(PAGE), "exec"), names)
    payment = PaymentWanted(account="a-1", cents=1750)
    with pytest.raises(KeyboardInterrupt):
        names["pay"](payment, Ctx(ground, Run()))
    ground.take_over(YOURS)
    assert names["pay"](payment, Ctx(ground, AGAIN)) == {"transfer": "a-1/1750"}
    assert len(bank.transfers) == 1

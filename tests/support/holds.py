"""Look at holds, and give orders by the command line."""

from tests.support.cli import Ran, packhorse
from tests.support.relay import Relays
from tests.support.wait import eventually

from packhorse.relay.orders.model import HoldView
from packhorse.relay.orders.postgres import PostgresOrders


def holds(database: str, *, ended: bool = False) -> list[HoldView]:
    """Return the open holds, the newest first; with *ended* all."""
    with PostgresOrders(database, "packhorse") as orders:
        return orders.holds(ended=ended)


def held(database: str, *codes: str, timeout: float = 30) -> list[HoldView]:
    """Wait until holds with exactly these *codes* are open and not on their way, and return them, the oldest first."""

    def there() -> list[HoldView]:
        found = [view for view in reversed(holds(database)) if view.state == "held" and not view.hold.asked]
        assert [view.hold.fault.code for view in found] == list(codes)
        return found

    return eventually(there, what=f"held: {', '.join(codes)}", timeout=timeout)


def none_held(database: str, *, timeout: float = 30) -> None:
    """Wait until nothing is held."""
    eventually(lambda: not holds(database), what="nothing is held", timeout=timeout)


def relay(group: Relays, *arguments: object, given: str = "") -> Ran:
    """Run `packhorse relay` with the settings of *group*."""
    return packhorse("relay", *arguments, given=given, **group.environment)

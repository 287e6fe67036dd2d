"""Both versions of the projection: two groups, so that each has its own place in the topic, its own inbox and its own table."""

from examples.projection.messages import Ordered
from packhorse.processor import Context, Processor

old = Processor("turnover-v1")
new = Processor("turnover-v2")


@old.handler(Ordered)
def add_euros(message: Ordered, ctx: Context) -> None:
    """Add whole euros, which is wrong."""
    ctx.connection.execute(
        "INSERT INTO turnover_v1 AS t VALUES (%s, %s) ON CONFLICT (customer) DO UPDATE SET euros = t.euros + EXCLUDED.euros",
        (message.customer, message.cents // 100),
    )


@new.handler(Ordered)
def add_cents(message: Ordered, ctx: Context) -> None:
    """Add cents, and count the orders."""
    ctx.connection.execute(
        "INSERT INTO turnover_v2 AS t VALUES (%s, %s, 1) ON CONFLICT (customer) DO UPDATE"
        " SET cents = t.cents + EXCLUDED.cents, orders = t.orders + 1",
        (message.customer, message.cents),
    )

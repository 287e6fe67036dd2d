"""Where a group stands, and what a reset sets, for programs."""

from packhorse.processor.offsets.resetting import Move, Standing


def standing_json(one: Standing) -> dict[str, int | None]:
    """Return where one partition stands."""
    lag = None if one.watermark is None else max(0, one.high - max(one.watermark, one.low))
    return {
        "partition": one.partition,
        "watermark": one.watermark,
        "committed": one.committed,
        "first": one.low,
        "next": one.high,
        "lag": lag,
    }


def move_json(move: Move) -> dict[str, int | None]:
    """Return what is set in one partition, and what that passes over and repeats."""
    one = move.standing
    return {
        "partition": one.partition,
        "watermark": one.watermark,
        "committed": one.committed,
        "to": move.to,
        "skips": move.skips,
        "repeats": move.repeats,
    }

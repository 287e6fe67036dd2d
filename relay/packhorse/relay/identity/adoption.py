"""What an adoption of another server's outbox does, as a value and as text."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Adoption:
    """
    What was done, or would be.

    Attributes:
        refusal: What the relay says of the position as it stands.
        saved, here: The server that the position was saved on, and this one.
        horizon: The new one; the old one and target are void.
        unpublished: Rows that the relay will publish from it.
        lost: Of these, rows that the old horizon had as published although nobody published them.
        published_rewritten: Rows that are published and get a transaction id that every snapshot has as past.
        renumbered: Rows that get a seq behind all others, because the sequence had begun anew.
        holds: Open holds that begin at the new horizon.
        sequence: Where the sequence of outbox.seq stands then.
        dry_run: Nothing was changed.
    """

    refusal: str
    saved: str | None
    here: str
    horizon: str
    unpublished: int
    lost: int
    published_rewritten: int
    renumbered: int
    holds: int
    sequence: int
    dry_run: bool

    def as_dict(self) -> dict[str, Any]:
        """Return what `--json` prints and the audit keeps."""
        return {name: getattr(self, name) for name in self.__slots__}

    def lines(self) -> list[tuple[str, str]]:
        """Return what people read: pairs of a name and a text."""
        would = "would be" if self.dry_run else "are"
        return [
            ("found", self.refusal),
            ("saved on", self.saved or "an unknown server"),
            ("this is", self.here),
            (
                "waiting",
                f"{self.unpublished:,} rows are not published and {would} next; transaction ids rewritten",
            ),
            ("lost", f"{self.lost:,} of them counted as published though nobody had published them"),
            (
                "published",
                f"stay published; {self.published_rewritten:,} of them {would} rewritten to an id of the past",
            ),
            ("renumbered", f"{self.renumbered:,} rows, because the sequence had begun anew"),
            ("holds", f"{self.holds:,} begin at the new horizon"),
            ("sequence", f"goes on behind {self.sequence:,}"),
            ("horizon", self.horizon),
        ]

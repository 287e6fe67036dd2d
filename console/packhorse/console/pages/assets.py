"""Styles, scripts and fonts: from the package, under addresses that change with what they hold, so that browsers may keep them."""

from dataclasses import dataclass
from functools import cache
from hashlib import sha256
from importlib.resources import files

PREFIX = "/assets"
_TYPES = {
    "css": "text/css; charset=utf-8",
    "js": "text/javascript; charset=utf-8",
    "svg": "image/svg+xml",
    "woff2": "font/woff2",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asset:
    """One file that pages ask for."""

    name: str
    media_type: str
    body: bytes
    address: str


@cache
def assets() -> dict[str, Asset]:
    """Return all of them by name; styles name their fonts by addresses beside their own."""
    root = files("packhorse.console.pages") / "static"
    bodies = {
        entry.name: entry.read_bytes()
        for folder in (root, root / "fonts")
        for entry in folder.iterdir()
        if entry.is_file() and entry.name.rpartition(".")[2] in _TYPES
    }
    # One number for all: a style and the fonts that it names stay together.
    number = sha256(b"".join(name.encode() + bodies[name] for name in sorted(bodies))).hexdigest()[:16]
    return {
        name: Asset(
            name=name,
            media_type=_TYPES[name.rpartition(".")[2]],
            body=body,
            address=f"{PREFIX}/{number}/{name}",
        )
        for name, body in bodies.items()
    }


def address_of(name: str) -> str:
    """Return the address of the file *name*; raises KeyError when there is none."""
    return assets()[name].address


def asset_at(path: str) -> Asset | None:
    """Return the file whose address *path* is; None: there is none, or of another version."""
    found = assets().get(path.rpartition("/")[2])
    return found if found is not None and found.address == path else None

"""The other libraries, each in a virtual environment of its own, at versions pinned with hashes under `peers/`."""

from pathlib import Path

from bench.peers import Peers

_PEERS = Peers(requirements=Path(__file__).parent / "peers", prefix="jobs")
python, version, missing = _PEERS.python, _PEERS.version, _PEERS.missing

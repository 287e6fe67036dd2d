"""What takes an event in: a function from the state and the event to the state."""

from collections.abc import Callable
from typing import Any

from packhorse.relay.deciding.moment import Moment
from packhorse.relay.deciding.state import State

Handler = Callable[[State, Any, Moment], State]
Handlers = dict[type[Any], Handler]

"""Where a handler stands just now: files, lines and names of functions, never a value."""

import sys
from collections.abc import Iterator
from pathlib import PurePath
from types import CodeType, FrameType
from typing import Any

from packhorse.processor.watching.hands import Hand

MOST_FRAMES = 25
"""The innermost ones say where it hangs."""
_TAIL = 3
"""Parts of a path that are shown: the rest says whose machine it is."""
_OURS = ("/packhorse/processor/", "/threading.py", "/asyncio/", "/concurrent/futures/")

Stack = tuple[str, ...]


def stack_of(hand: Hand) -> Stack:
    """
    Return the frames of the handler that holds *hand*, outermost first, as `file:line function`; empty when it has ended.

    Frames of the lane that called it are left out, and of a deep stack the outer ones. From any thread; what it shows may
    be a moment old.
    """
    frames = list(_task_frames(hand.task)) or list(_thread_frames(hand.thread))
    return trimmed([(code.co_filename, line, code.co_qualname) for code, line in frames])


def trimmed(frames: list[tuple[str, int, str]]) -> Stack:
    """
    Return *frames* (file, line, function; outermost first) as lines, without those around the handler, and capped.

    >>> trimmed([("/a/threading.py", 9, "Thread.run"), ("/srv/app/orders/handlers.py", 7, "placed")])
    ('app/orders/handlers.py:7 placed',)
    """
    first = next((at for at, (name, _, _) in enumerate(frames) if not _is_ours(name)), 0)
    shown = frames[first:]
    cut = (f"… {len(shown) - MOST_FRAMES} more …",) if len(shown) > MOST_FRAMES else ()
    return (*cut, *(f"{_short(name)}:{line} {function}" for name, line, function in shown[-MOST_FRAMES:]))


def _is_ours(name: str) -> bool:
    return any(part in name for part in _OURS) or name.endswith("contextlib.py")


def _short(name: str) -> str:
    return "/".join(PurePath(name).parts[-_TAIL:]).lstrip("/")


def _thread_frames(ident: int) -> Iterator[tuple[CodeType, int]]:
    frame: FrameType | None = sys._current_frames().get(ident)  # noqa: SLF001 the only way to another thread's frames
    found = []
    while frame is not None:
        found.append((frame.f_code, frame.f_lineno))
        frame = frame.f_back
    yield from reversed(found)


def _task_frames(task: Any) -> Iterator[tuple[CodeType, int]]:
    """Yield the frames of a task that awaits; none when it runs just now: then it blocks its thread, whose frames tell."""
    inner = None if task is None else task.get_coro()
    while inner is not None and not _of(inner, "running"):
        frame = _of(inner, "frame")
        if frame is None:
            return
        yield frame.f_code, frame.f_lineno
        inner = _of(inner, "await") or getattr(inner, "gi_yieldfrom", None)


def _of(awaitable: Any, what: str) -> Any:
    return next(
        (
            found
            for kind in ("cr", "gi", "ag")
            if (found := getattr(awaitable, f"{kind}_{what}", None)) is not None
        ),
        None,
    )

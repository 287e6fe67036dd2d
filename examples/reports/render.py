"""Pages: every text from outside is escaped where it is put in."""

import json
from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from string import Template
from typing import Any
from uuid import UUID

from examples.reports.ordering import LONGEST_TITLE
from examples.reports.words import WORDS, stage_of

_PAGES = Path(__file__).parent / "pages"


class Html(str):
    """Text that is HTML already."""

    __slots__ = ()


def page(name: str, **values: object) -> str:
    """Return the page *name* with *values*, escaped unless they are `Html`, in the frame that all pages have."""
    return _filled(
        "frame", head=Html(values.pop("head", "")), title=values["title"], body=Html(_filled(name, **values))
    )


def front(*, person: str, request_key: str, reports: Iterable[tuple[UUID, str]], error: str | None) -> str:
    """Return the page with the form and the person's reports."""
    items = "".join(f'<li><a href="/reports/{job_id}">{escape(title)}</a></li>' for job_id, title in reports)
    return page(
        "front",
        title="Reports",
        person=person,
        request_key=request_key,
        longest=LONGEST_TITLE,
        reports=Html(f"<ul>{items}</ul>" if items else "<p>None yet.</p>"),
        error=Html(f'<p class="error" role="alert">{escape(error)}</p>' if error else ""),
    )


def standing(title: str, job: Mapping[str, Any]) -> str:
    """Return the page of one report; *job* as `GET /jobs/<id>` answers."""
    stage, progress = stage_of(job), job["progress"] or {}
    headline, detail = WORDS[stage]
    return page(
        "report",
        title=title,
        # Without a script the page looks again by itself, as long as something may change.
        head="" if job["over"] else '<noscript><meta http-equiv="refresh" content="3"></noscript>',
        id=job["id"],
        stage=stage,
        words=json.dumps(WORDS),
        headline=headline,
        detail=detail,
        error=job["error"] if stage in {"failed", "retrying"} and job["error"] else "",
        done=progress.get("done") or 0,
        total=progress.get("total") or 1,
        progress_text=_progress_text(progress),
        hide_progress=_hidden(job["state"] != "running"),
        hide_ready=_hidden(stage != "ready"),
        hide_cancel=_hidden("cancel" not in job["links"]),
    )


def _progress_text(progress: Mapping[str, Any]) -> str:
    if not progress:
        return ""
    return f"{progress['done']} of {progress['total'] or '?'}{': ' + progress['text'] if progress['text'] else ''}"


def _hidden(is_hidden: bool) -> Html:
    return Html("hidden" if is_hidden else "")


def _filled(name: str, **values: object) -> str:
    safe = {key: value if isinstance(value, Html) else escape(str(value)) for key, value in values.items()}
    return Template((_PAGES / f"{name}.html").read_text(encoding="utf-8")).substitute(safe)

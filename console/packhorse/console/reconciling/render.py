"""What a reconciliation found, for people and for programs."""

from collections.abc import Iterator
from typing import Any

from packhorse.console.reconciling.model import SHOWN, Finding, Report
from packhorse.core.text import counted, inert


def report_json(report: Report) -> dict[str, Any]:
    """Return *report* for programs."""
    return {
        "well": report.is_well,
        "looked": report.looked,
        "findings": [
            {
                "name": finding.name,
                "count": finding.count,
                "ids": finding.ids[:SHOWN],
                "notes": finding.notes,
                "means": finding.meaning.means,
                "repair": finding.meaning.mends,
                "mended": finding.mended,
                "left": finding.left,
            }
            for finding in report.found()
        ],
    }


def report_lines(report: Report, *, repaired: bool) -> Iterator[str]:
    """Yield *report* for people."""
    for finding in report.found():
        yield from _lines(finding, repaired=repaired)
    if not report.findings:
        yield f"all adds up: {counted(report.looked, 'row')} looked at"
    elif report.is_well:
        yield "all that was found is put right"


def _lines(finding: Finding, *, repaired: bool) -> Iterator[str]:
    yield f"{finding.name}: {finding.count}"
    for note in finding.notes:
        yield f"  {inert(note)}"
    yield f"  means   {finding.meaning.means}"
    if finding.meaning.mends is None:
        yield "  repair  none that is safe: a person decides"
    elif repaired:
        yield f"  repair  {finding.mended} put right"
    else:
        yield f"  repair  --repair {finding.meaning.mends}"
    for each in finding.ids[:SHOWN]:
        yield f"  job     {each}"
    if (more := finding.count - SHOWN) > 0:
        yield f"  job     and {more} more"

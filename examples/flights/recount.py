"""
Count everything again, straight from the lines of the data, in another way.

It shares no code with the rest of the demo: no Flight, no time zone database, no SQL. It knows the rules of README.md
and does its own arithmetic, in minutes since the year began in Greenwich. What `verify` finds equal was computed
twice.
"""

import csv
import hashlib
from collections import defaultdict
from collections.abc import Iterable

Figures = dict[str, dict[str, int | str]]
Times = dict[str, int | None]

DAYS_BEFORE_MONTH = (0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334)
A_DAY = 1440
# Clocks in the States went forward on 10 March 2013 and back on 3 November, at two o'clock.
SPRING = (31 + 28 + 9) * A_DAY + 120
AUTUMN = (304 + 2) * A_DAY + 120
NEW_YORK = (-300, True)
NOT_IN_AIRPORTS_CSV = ("BQN", "PSE", "SJU", "STT")


def recount(flights_csv: Iterable[str], airports_csv: Iterable[str]) -> tuple[Figures, Figures]:
    """Return the figures of all airports and of all aircraft, by airport and tail number, from the two files."""
    clocks = {
        line["faa"]: (int(line["tz"]) * 60, line["dst"] == "A") for line in csv.DictReader(airports_csv)
    }
    clocks |= dict.fromkeys(NOT_IN_AIRPORTS_CSV, (-240, False))
    lines = [(line, _times(line, clocks)) for line in csv.DictReader(flights_csv)]
    return _airports(lines), _aircraft(lines)


def _airports(lines: list[tuple[dict[str, str], Times]]) -> Figures:
    airports: defaultdict[str, dict[str, int | str]] = defaultdict(
        lambda: dict.fromkeys(
            [
                "planned",
                "departures",
                "arrivals",
                "cancelled",
                "departure_delay_minutes",
                "arrival_delay_minutes",
            ],
            0,
        )
    )
    for line, times in lines:
        origin, destination = airports[line["origin"]], airports[line["dest"]]
        _add(origin, "planned", 1)
        _add(origin, "departures" if times["left"] is not None else "cancelled", 1)
        _add(origin, "departure_delay_minutes", _int(line["dep_delay"]))
        if times["landed"] is not None:
            _add(destination, "arrivals", 1)
            _add(destination, "arrival_delay_minutes", _int(line["arr_delay"]))
    # An airport to which nothing ever came has no figures in the database either.
    return {code: figures for code, figures in airports.items() if any(figures.values())}


def _aircraft(lines: list[tuple[dict[str, str], Times]]) -> Figures:
    told: defaultdict[str, list[tuple[int, str, str, dict[str, str], Times]]] = defaultdict(list)
    planned: defaultdict[str, int] = defaultdict(int)
    for line, times in lines:
        if line["tailnum"] in {"", "NA"}:
            continue
        planned[line["tailnum"]] += 1
        name = f"2013-{int(line['month']):02}-{int(line['day']):02}-{line['carrier']}{line['flight']}-{line['origin']}"
        life = {"left": "departed", "landed": "arrived", "dropped": "cancelled"}
        for moment, word in life.items():
            if (minute := times[moment]) is not None:
                told[line["tailnum"]].append((minute, name, word, line, times))
    return {tail: _story(steps, planned[tail]) for tail, steps in told.items()}


def _story(steps: list[tuple[int, str, str, dict[str, str], Times]], planned: int) -> dict[str, int | str]:
    figures: dict[str, int | str] = dict.fromkeys(
        [
            "flights",
            "arrivals",
            "cancelled",
            "miles",
            "minutes_in_air",
            "minutes_under_way",
            "links_kept",
            "links_broken",
        ],
        0,
    )
    figures["planned"] = planned
    chain, last = "", ""
    for _, name, word, line, times in sorted(steps, key=lambda step: step[:2]):
        chain = hashlib.sha256(f"{chain}{word} {name}".encode()).hexdigest()
        if word == "cancelled":
            _add(figures, "cancelled", 1)
        elif word == "departed":
            _add(figures, "flights", 1)
            _add(figures, "miles", int(line["distance"]))
            if last:
                _add(figures, "links_kept" if line["origin"] == last else "links_broken", 1)
            last = line["origin"]
        else:
            _add(figures, "arrivals", 1)
            _add(figures, "minutes_in_air", _int(line["air_time"]))
            _add(figures, "minutes_under_way", (times["landed"] or 0) - (times["left"] or 0))
    return {**figures, "chain": chain}


def _times(line: dict[str, str], clocks: dict[str, tuple[int, bool]]) -> Times:
    """Return the minute at which it left, landed, or was dropped."""
    midnight = (DAYS_BEFORE_MONTH[int(line["month"]) - 1] + int(line["day"]) - 1) * A_DAY
    planned = _greenwich(midnight + _since_midnight(line["sched_dep_time"]), NEW_YORK)
    if line["dep_time"] in {"", "NA"}:
        return {"left": None, "landed": None, "dropped": planned}
    left = planned + int(line["dep_delay"])
    if line["arr_time"] in {"", "NA"}:
        return {"left": left, "landed": None, "dropped": None}
    reads, clock = _since_midnight(line["arr_time"]), clocks[line["dest"]]
    first_day = left // A_DAY - 2
    candidates = (_greenwich(day * A_DAY + reads, clock) for day in range(first_day, first_day + 5))
    return {"left": left, "landed": min(minute for minute in candidates if minute > left), "dropped": None}


def _greenwich(local: int, clock: tuple[int, bool]) -> int:
    """
    Return the minute in Greenwich at which a clock there shows *local*.

    An hour that the clocks skip in spring is told in winter time; of the two equal ones in autumn, the first is meant.
    """
    offset, summer_time = clock
    summer = summer_time and SPRING + 60 <= local < AUTUMN
    return local - offset - (60 if summer else 0)


def _since_midnight(text: str) -> int:
    return int(text) // 100 * 60 + int(text) % 100


def _int(text: str) -> int:
    return 0 if text in {"", "NA"} else int(text)


def _add(figures: dict[str, int | str], name: str, count: int) -> None:
    figures[name] = int(figures[name]) + count

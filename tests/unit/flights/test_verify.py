"""The comparison finds what differs, on either side."""

from examples.flights.recount import Figures
from examples.flights.verify import check_figures

HERE: Figures = {"EWR": {"departures": 3, "cancelled": 1}, "JFK": {"departures": 5, "cancelled": 0}}


def changed(airport: str, field: str, value: int) -> Figures:
    return {**HERE, airport: {**HERE[airport], field: value}}


def test_equal_figures_are_equal() -> None:
    check = check_figures("airports", HERE, changed("EWR", "departures", 3))
    assert check.good
    assert check.found == "4 figures of 2 airports counted twice"


def test_one_figure_that_differs_is_named() -> None:
    check = check_figures("airports", changed("JFK", "departures", 6), HERE)
    assert check.differences == ["JFK: departures is 6, the data says 5"]


def test_a_figure_of_one_side_only_is_named() -> None:
    more: Figures = {**HERE, "LGA": {"departures": 1, "cancelled": 0}}
    assert check_figures("airports", more, HERE).differences == ["LGA: counted only"]
    assert check_figures("airports", HERE, more).differences == ["LGA: recounted only"]
    assert check_figures("airports", changed("EWR", "arrivals", 2), HERE).differences == [
        "EWR: arrivals is 2, the data says None"
    ]

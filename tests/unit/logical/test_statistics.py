"""What can be told from figures, and what cannot."""

from __future__ import annotations

import pytest

from trendloom.logical.statistics import ONE_KEY, UNKNOWN, KeySpread, Origin, Statistics
from trendloom.model.time import Window


def test_nothing_is_known_at_first() -> None:
    assert UNKNOWN.origin is Origin.NOTHING
    assert UNKNOWN.events is UNKNOWN.span is UNKNOWN.relevant is None
    assert UNKNOWN.spread(("k",)) is None
    assert UNKNOWN.spread(()) == ONE_KEY
    assert UNKNOWN.share_of_time(Window(10)) is None
    assert UNKNOWN.windows(Window(10, 5)) is None


def test_the_share_of_time_that_a_window_holds() -> None:
    known = Statistics(first=0, last=99)
    assert known.span == 100
    assert known.share_of_time(Window(10)) == 0.1
    assert known.share_of_time(Window(500)) == known.share_of_time(Window()) == 1


@pytest.mark.parametrize(("first", "last"), [(0, 0), (0, 9), (-7, 23), (5, 4 + 10)])
def test_windows_that_overlap_the_stream(first: int, last: int) -> None:
    known = Statistics(first=first, last=last)
    for within, slide in ((10, 5), (10, 10), (3, 5), (7, 2)):
        starts = [k * slide for k in range(-50, 50)]
        overlapping = [start for start in starts if start <= last and start + within > first]
        if within >= slide:
            assert known.windows(Window(within, slide)) == len(overlapping)
        else:
            assert known.windows(Window(within, slide)) == pytest.approx(len(overlapping), abs=1)
    assert known.windows(Window(10)) == 1


def test_keys_by_size() -> None:
    assert KeySpread(4.0).classes() == ((4.0, 0.25),)
    assert KeySpread(5.0, 0.6).classes() == ((1.0, 0.6), (4.0, pytest.approx(0.1)))
    assert ONE_KEY.classes() == ((1.0, 1.0),)
    assert KeySpread(4.0, 0.25).classes() == ((4.0, 0.25),)
    assert KeySpread(0.0).classes() == ()

"""Pictures of matches: legend, counts and axes say what is there; thinning a curve loses no extreme."""

from __future__ import annotations

import datetime
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest

from trendloom.errors import OptionError
from trendloom.viz.timeline import draw_matches, thinned

START = datetime.datetime(2014, 1, 1)
HOURS = [START + datetime.timedelta(hours=number) for number in range(1000)]
STREAM = pa.table({"time": HOURS, "value": np.sin(np.arange(1000) / 20)})


def match(first: int, *hours: int) -> list[tuple[datetime.datetime, float, str]]:
    return [(HOURS[first + hour], 0.5, "rise" if hour < 2 else "fall") for hour in hours]


def text_of(path: Path) -> str:
    return path.read_text()


def test_integer_times_without_a_curve(tmp_path: Path) -> None:
    events = pa.table({"time": [1, 2, 3, 4]})
    text = text_of(draw_matches(events, [[(1, None, "A"), (4, None, "B")]], tmp_path / "m.svg", title="pairs"))
    for said in (">pairs<", ">1 match<", ">A<", ">B<", ">time<"):
        assert said in text


def test_long_matches_share_the_time_axis_of_the_curve(tmp_path: Path) -> None:
    text = text_of(draw_matches(STREAM, [match(0, 0, 1, 500)], tmp_path / "m.svg", value="value"))
    assert "time (UTC)" in text
    assert "since the first event" not in text


def test_short_matches_are_drawn_since_their_first_event(tmp_path: Path) -> None:
    text = text_of(draw_matches(STREAM, [match(10, 0, 1, 5), match(700, 0, 4)], tmp_path / "m.svg", value="value"))
    assert "hours since the first event of the match" in text
    assert "Jan 01 10:00" in text
    forced = draw_matches(STREAM, [match(10, 0, 5)], tmp_path / "f.svg", value="value", relative=False)
    assert "since the first event" not in text_of(forced)


def test_more_matches_than_fit_are_counted(tmp_path: Path) -> None:
    text = text_of(draw_matches(STREAM, [match(row, 0, 1) for row in range(40)], tmp_path / "m.svg", most=7))
    assert "the first 7 of 40 matches" in text


def test_shaded_spans_are_in_the_legend(tmp_path: Path) -> None:
    spans = [(HOURS[10], HOURS[90])]
    with_spans = draw_matches(
        STREAM, [match(0, 0, 1)], tmp_path / "m.svg", value="value", spans=spans, spans_label="anomaly"
    )
    assert ">anomaly<" in text_of(with_spans)


@pytest.mark.parametrize("value", [None, "value"])
def test_no_matches_and_no_events_are_pictures_too(value: str | None, tmp_path: Path) -> None:
    assert "0 matches" in text_of(draw_matches(STREAM.slice(0, 0), [], tmp_path / "m.svg", value=value))


def test_an_unknown_column_is_refused(tmp_path: Path) -> None:
    with pytest.raises(OptionError) as caught:
        draw_matches(STREAM, [], tmp_path / "m.svg", value="valu")
    assert "did you mean 'value'" in str(caught.value.hint)


def test_thinning_keeps_every_extreme_and_the_order() -> None:
    values = np.zeros(100_000)
    values[[12_345, 77_777]] = (9.0, -9.0)
    values[500:900] = np.nan
    keep = thinned(values, 200)
    assert {12_345, 77_777} <= set(keep.tolist())
    assert len(keep) <= 400
    assert np.all(np.diff(keep) > 0)


def test_short_curves_are_kept_whole() -> None:
    assert thinned(np.arange(5.0), 200).tolist() == [0, 1, 2, 3, 4]

"""What viz says is drawn, as Plotly figures: everything is in them, and text is text."""

from __future__ import annotations

import json
import math

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.viz.test_pattern_picture import EDGES, NODES
from tests.unit.viz.test_reason_charts import diagnosis

from trendloom.dashboard.figures import drawing_figure, plain, reason_figure, series_figure, timeline_figure
from trendloom.dashboard.monitor import proposed_window
from trendloom.dashboard.parts import shown_value
from trendloom.viz.query import PatternNode, drawing_of
from trendloom.viz.reasons import MarkedSpan, charts_of
from trendloom.viz.timeline import Curve, timeline_of

SCRIPT = "<script>alert(1)</script>"


def test_text_is_not_read_as_html() -> None:
    assert plain(f"a\n{SCRIPT}&amp;") == "a<br>&lt;script&gt;alert(1)&lt;/script&gt;&amp;amp;"
    drawn = drawing_figure(drawing_of([PatternNode(0, SCRIPT, SCRIPT, note=SCRIPT)], []))
    lanes = timeline_of(pa.table({"time": [1, 2]}), [[(1, None, SCRIPT)]])
    curve = Curve(SCRIPT, np.array([1, 2]), np.array([1.0, 2.0]))
    for figure in (drawn, timeline_figure(lanes), series_figure(curve, (), "kept")):
        assert "<script" not in figure.to_json()
        assert "&lt;script" in figure.to_json()


def test_a_pattern_has_its_circles_arrows_and_notes() -> None:
    drawing = drawing_of(NODES, EDGES)
    figure = drawing_figure(drawing)
    texts = [one.text for one in figure.layout.annotations]
    for said in ("<b>a</b>", "Shelf", "Load<br>b.val &gt; 3", "NOT Open", "NOT CheckOut", "NOT Alarm", "rising"):
        assert said in texts
    paths = [one for one in figure.layout.shapes if one.type == "path"]
    assert len(paths) == 2 * 7, "a curve and a head for each arrow, the way in and the NOT at the end included"
    assert figure.layout.width == pytest.approx((drawing.high[0] - drawing.low[0]) * 96, abs=1)


def test_lanes_are_rows_and_variables_are_traces() -> None:
    found = timeline_of(
        pa.table({"time": [1, 2, 3, 9]}), [[(1, None, "a"), (3, None, "b")], [(2, None, "a"), (9, None, "b")]]
    )
    figure = timeline_figure(found)
    by_name = {trace.name: trace for trace in figure.data if trace.name}
    assert (list(by_name["a"].x), list(by_name["a"].y)) == ([1, 2], [0, 1])
    assert (list(by_name["b"].x), list(by_name["b"].y)) == ([3, 9], [0, 1])
    assert list(by_name["events"].x) == [1, 2, 3, 9]
    assert list(figure.layout.yaxis.ticktext) == ["1", "2"]


def test_a_reason_shows_kinds_and_boundary() -> None:
    (chart,) = charts_of(diagnosis(), dated=True)
    figure = reason_figure(chart)
    named = {trace.name: trace for trace in figure.data if trace.name}
    assert list(named["abnormal"].y) == [1.0, 2.0]
    assert list(named["reference"].y) == [9.0, 8.0, None]
    lines = [shape for shape in figure.layout.shapes if shape.line.dash == "dash"]
    assert [line.y0 for line in lines] == [3.0]
    assert figure.data[0].x[0].startswith("1970-01-01T00:00:00")


def test_numbers_that_json_does_not_know_are_gaps() -> None:
    curve = Curve("v", np.array([1, 2, 3]), np.array([1.0, math.inf, math.nan]))
    figure = series_figure(curve, (MarkedSpan(1, 2, "abnormal"),), "kept")
    assert json.loads(figure.to_json())["data"][0]["y"] == [1.0, None, None]


@pytest.mark.parametrize(
    ("gap", "window"), [(1, "30 s"), (30, "30 s"), (31, "1 min"), (300, "5 min"), (4_000, "6 h"), (900_000, "1 d")]
)
def test_a_window_holds_a_value_of_the_series(gap: int, window: str) -> None:
    times = (np.arange(5) * gap * 1_000_000).astype("datetime64[us]")
    assert proposed_window(Curve("v", times, np.zeros(5)), dated=True) == window
    assert proposed_window(Curve("v", np.arange(5), np.zeros(5)), dated=False) == "30 s"


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "–"),
        (True, "true"),
        (0.1 + 0.2, "0.3"),
        (math.nan, "nan"),
        ("x" * 500, "x" * 159 + "…"),
        ([{"var": "a", "time": 3}, {"var": "b", "time": 4}], "a 3 → b 4"),
        ([{"var": "a", "time": 3}] + [{"var": "b", "time": 4}] * 7, "a 3 → b ×7"),
        ([1, None], "1 → –"),
        ({"k": 1}, "{'k': 1}"),
    ],
)
def test_cells_are_short_and_readable(value: object, shown: str) -> None:
    assert shown_value(value) == shown

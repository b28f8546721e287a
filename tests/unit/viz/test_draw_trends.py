"""Pictures of the trend graph and of what cuts cost: drawn, and the same each time."""

from __future__ import annotations

from pathlib import Path

import pytest

from trendloom.errors import OptionError
from trendloom.viz.trends import Walked, draw_trade_off, draw_trend_graph

VALUES = [1.0, 3.0, 2.0, 4.0]
EDGES = [(0, 1), (0, 2), (1, 3), (2, 3)]


def test_graph_with_graphlets_and_a_trend(tmp_path: Path) -> None:
    one = draw_trend_graph(VALUES, EDGES, tmp_path / "a.svg", bounds=[0, 2, 4], trend=[0, 1, 3], title="rising")
    two = draw_trend_graph(VALUES, EDGES, tmp_path / "b.svg", bounds=[0, 2, 4], trend=[0, 1, 3], title="rising")
    text = one.read_text()
    assert text == two.read_text()
    assert all(word in text for word in ("graphlet 1", "graphlet 2", "rising"))
    assert text != draw_trend_graph(VALUES, EDGES, tmp_path / "c.svg").read_text()


def test_trade_off(tmp_path: Path) -> None:
    ways = [Walked("one at a time", 0, 2.0, 0), Walked("cut", 4, 1.0, 4096), Walked("cut", 7, 1.5, 1024)]
    text = draw_trade_off(ways, tmp_path / "trade.svg", title="a day").read_text()
    assert all(word in text for word in ("one at a time", "cut", "a day", "KiB stored"))


def test_a_picture_is_svg_or_png(tmp_path: Path) -> None:
    with pytest.raises(OptionError, match="cannot draw"):
        draw_trade_off([], tmp_path / "trade.gif")

"""The board of a ranked query: its best matches on a time line, a lane for each, the best on top.

A *board* is what is ranked together: the matches of a window and partition, or of a window. A query has as many boards
as it has windows and partitions with matches; `board_of` takes the one with the best score of all, and
`draw_board` draws it. Cost: a sort of the first rows of all boards, and the events of the matches that are drawn.
"""

from __future__ import annotations

import datetime
import textwrap
from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from trendloom.errors import OptionError
from trendloom.logical.display import show_preference
from trendloom.logical.plan import RANK, SCORE, Plan
from trendloom.model.selection import Trends
from trendloom.pattern.algebra import atoms
from trendloom.viz.canvas import NOTE, colours, draw_legend, heading, label_time, picture
from trendloom.viz.timeline import Mark, Span, are_short, draw_lanes, naive_utc, since_first

if TYPE_CHECKING:
    from matplotlib.axes import Axes

MOST = 10
"""Matches on a picture."""
CAPTION_WIDTH = 105  # letters in a line


@dataclass(frozen=True)
class Lane:
    """A match and its place: the score (None: NULL), and the partition, where partitions are ranked together."""

    rank: int
    score: int | float | Decimal | None
    partition: dict[str, object]
    marks: tuple[Mark, ...]

    @property
    def name(self) -> str:
        return "   ".join([f"{self.rank}", _number(self.score), *named_values(self.partition)])


@dataclass(frozen=True)
class Board:
    """The best matches of a window (None: of the whole stream) and of a partition (empty: of all).

    `variables` are those of the pattern, in its order.
    """

    preference: str
    variables: tuple[str, ...]
    window: Span | None
    partition: dict[str, object]
    lanes: tuple[Lane, ...]


def check_board(plan: Plan) -> None:
    """Refuse a query without a board."""
    if plan.ranking is None:
        raise OptionError("there is no board to draw: the query does not rank its matches", hint="RANK BY ranks them")
    check_events(plan)


def check_events(plan: Plan) -> None:
    """Refuse a query whose rows hold no events."""
    if not isinstance(plan.output, Trends):
        raise OptionError(
            "there are no events to draw: the query returns values", hint="leave RETURN out: rows then hold events"
        )


def first_rows(rows: pa.Table | pa.RecordBatch, most: int = MOST) -> pa.Table | pa.RecordBatch:
    """The rows that a picture may show."""
    return rows.filter(pc.less_equal(rows.column(RANK), most))


def board_of(plan: Plan, rows: pa.Table, *, most: int = MOST) -> Board:
    """The board with the best score among the rows of a ranked query; of equal ones the first."""
    check_board(plan)
    assert plan.ranking is not None
    shown = first_rows(rows, most)
    apart = ["window_start"] if plan.window.sliding else []
    partition = list(plan.partition)
    if not plan.ranking.overall:
        apart += partition
    order = "descending" if plan.ranking.descending else "ascending"
    leaders = shown.filter(pc.equal(shown.column(RANK), 1))
    variables = tuple(dict.fromkeys(atom.variable for atom in atoms(plan.pattern, negated=False)))
    if not leaders.num_rows:
        return Board(show_preference(plan), variables, None, {}, ())
    best = leaders.slice(pc.sort_indices(leaders, [(SCORE, order)])[0].as_py(), 1)
    listed = _equal_in(apart, shown, best).sort_by(RANK).to_pylist()
    lanes = tuple(_lane(plan, row, partition if plan.ranking.overall else []) for row in listed)
    (leader,) = best.drop_columns(["events"]).to_pylist()
    window = (naive_utc(leader["window_start"]), naive_utc(leader["window_end"])) if plan.window.sliding else None
    of = {} if plan.ranking.overall else {name: leader[name] for name in partition}
    return Board(show_preference(plan), variables, window, of, lanes)


def _equal_in(columns: list[str], rows: pa.Table, one: pa.Table) -> pa.Table:
    """The rows that hold in these columns what this one holds; NULL is equal to NULL."""
    for name in columns:
        value = one.column(name)[0]
        column = rows.column(name)
        rows = rows.filter(pc.equal(column, value) if value.is_valid else pc.is_null(column))
    return rows


def _lane(plan: Plan, row: dict[str, Any], partition: list[str]) -> Lane:
    marks = tuple(Mark(naive_utc(event[plan.schema.time]), None, event["var"]) for event in row["events"])
    return Lane(row[RANK], row[SCORE], {name: row[name] for name in partition}, marks)


# ------------------------------------------------------------------------------------------------------ drawing


def draw_board(board: Board, path: str | Path, *, title: str | None = None) -> Path:
    """Draw a board into an .svg or .png file.

    Its time line is the window, or what the matches span; matches that would be dots on it are drawn since their first
    event instead.
    """
    matches = [lane.marks for lane in board.lanes]
    with picture(path, 10, 0.9 + 0.3 * max(2, len(matches))) as figure:
        axes, palette = figure.add_subplot(), colours(board.variables)
        times = _times([mark.time for match in matches for mark in match])
        moments, since = _moments(board, times)
        draw_lanes(axes, matches, palette, moments, [lane.name for lane in board.lanes])
        axes.set_ylim(max(2, len(matches)) - 0.4, -0.6)
        if since is None:
            if board.window is not None:
                axes.set_xlim(*board.window)  # type: ignore[arg-type]
            label_time(axes, times)
        else:
            axes.set_xlabel(since)
        axes.set_ylabel("rank and score")
        _head(axes, board, title)
        draw_legend(axes, palette)
    return Path(path)


def _moments(board: Board, times: npt.NDArray[Any]) -> tuple[list[list[Any]], str | None]:
    """When the events of each lane are drawn, and what that is since, if not since ever."""
    matches = [lane.marks for lane in board.lanes]
    if board.window is None and are_short(matches, times):
        return since_first(matches)
    return [[mark.time for mark in match] for match in matches], None


def _times(found: list[Any]) -> npt.NDArray[Any]:
    if found and isinstance(found[0], datetime.datetime):
        return np.array(found, "datetime64[us]")
    return np.array(found)


def _head(axes: Axes, board: Board, title: str | None) -> None:
    caption = textwrap.fill(f"{'  ·  '.join([board.preference, *_of_board(board)])}", CAPTION_WIDTH)
    lines = caption.count("\n") + 1
    axes.text(0, 1.02, caption, transform=axes.transAxes, fontsize=9, color=NOTE, va="bottom")
    heading(axes, title, pad=12 + 12 * lines)


def _of_board(board: Board) -> Iterator[str]:
    yield from named_values(board.partition)
    if board.window is not None:
        start, end = (
            f"{bound:%Y-%m-%d %H:%M}" if isinstance(bound, datetime.datetime) else f"{bound}" for bound in board.window
        )
        yield f"window {start} to {end}"


def named_values(partition: dict[str, object]) -> list[str]:
    """The values of a partition, each with its name."""
    return [f"{name} {'NULL' if value is None else value}" for name, value in partition.items()]


def _number(score: int | float | Decimal | None) -> str:
    if score is None:
        return "NULL"
    return f"{score:,.7g}" if isinstance(score, float) else f"{score:,}"

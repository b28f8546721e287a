"""What all pictures share: shapes as data, colours that colour-blind readers can tell apart, and files of figures.

Figures are made without pyplot, so drawing changes no global state and needs no display. The ending of the file name
chooses SVG or PNG; the same input gives the same SVG, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from trendloom.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# ------------------------------------------------------------------------------------------- shapes as data
#
# A picture that files and the page both show is computed once as shapes; `paint` puts them into a file with Matplotlib,
# `dashboard.figures` onto the page with Plotly. One unit is one inch. Shapes stand in the order in which they are
# drawn, those of a higher `level` above the others.


Point = tuple[float, float]


@dataclass(frozen=True)
class Disc:
    """A circle: its rim, and a fill (a colour, or one with two more digits for how much of it is seen)."""

    centre: Point
    radius: float
    rim: str
    fill: str
    width: float = 1.8
    level: int = 4


@dataclass(frozen=True)
class Arrow:
    """A line of two points, or a curve with one or two control points between its ends, with a head at the end."""

    points: tuple[Point, ...]
    colour: str
    dashed: bool = False


@dataclass(frozen=True)
class Dot:
    """A small mark, of the same size in every picture."""

    centre: Point
    colour: str


@dataclass(frozen=True)
class Words:
    """Text at a point: centred sidewise, and above, below or around it; in a box if `box` says its fill and rim."""

    place: Point
    text: str
    size: float
    upright: str = "center"  # which part of the text lies at the point: center, top, bottom
    colour: str | None = None
    bold: bool = False
    box: tuple[str, str] | None = None
    level: int | None = None


Shape = Disc | Arrow | Dot | Words


@dataclass(frozen=True)
class Drawing:
    """Shapes and the stretch of the plane that shows them all: its left lower and right upper corner."""

    shapes: tuple[Shape, ...]
    low: Point
    high: Point


PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8C6D31", "#5E4FA2", "#7F7F7F")
"""After Okabe and Ito, without their yellow (invisible on white) and vermilion (kept for what is forbidden)."""

FORBIDDEN = "#D55E00"
INK = "#222222"
NOTE = "#555555"
FAINT = "#9AA0A6"
GRID = "#E6E8EB"

STYLE = {
    "font.family": "DejaVu Sans",
    "font.size": 10,
    "text.color": INK,
    "axes.edgecolor": FAINT,
    "axes.labelcolor": INK,
    "xtick.color": INK,
    "ytick.color": INK,
    "svg.hashsalt": "trendloom",
    "svg.fonttype": "none",
}


def colours(variables: Iterable[str]) -> dict[str, str]:
    """One colour per variable, in order of appearance; more variables than colours start over."""
    names = list(dict.fromkeys(variables))
    return {name: PALETTE[index % len(PALETTE)] for index, name in enumerate(names)}


def require_matplotlib() -> None:
    try:
        import matplotlib  # noqa: F401
    except ImportError as problem:
        raise OptionError("pictures need matplotlib", hint="pip install 'trendloom[viz]'") from problem


def check_picture(path: str | Path) -> Path:
    """The path of a picture, if it is one we can write."""
    target = Path(path)
    if target.suffix.lower() not in (".svg", ".png"):
        raise OptionError(f"cannot draw {target.name}", hint="a picture's name ends in .svg or .png")
    if not target.parent.is_dir():
        raise OptionError(f"there is no folder {target.parent}", hint="make the folder first")
    return target


@contextmanager
def picture(path: str | Path, width: float = 10, height: float = 5) -> Iterator[Figure]:
    """A figure of so many inches to draw on; saved as .svg or .png when the block is over."""
    target = check_picture(path)
    require_matplotlib()
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    metadata = {"Date": None} if target.suffix.lower() == ".svg" else {"Software": None}
    style: Any = STYLE  # matplotlib's types need literal keys
    with rc_context(style):
        figure = Figure(figsize=(width, height))
        yield figure
        figure.savefig(target, dpi=160, metadata=metadata, facecolor="white", bbox_inches="tight", pad_inches=0.15)


# ------------------------------------------------------------------------------------------------- axes


def plane(figure: Figure) -> Axes:
    """Axes over all of the figure, without frame and ticks; `fit` sets their limits."""
    axes = figure.add_axes((0, 0, 1, 1))
    axes.axis("off")
    return axes


def fit(axes: Axes, low: Point, high: Point) -> None:
    """Show this stretch of the plane; one unit is one inch, so that boxes and letters keep their proportion."""
    axes.set_xlim(low[0], high[0])
    axes.set_ylim(low[1], high[1])
    axes.figure.set_size_inches(high[0] - low[0], high[1] - low[1])  # type: ignore[union-attr]


def heading(axes: Axes, title: str | None, note: str = "", *, pad: float = 12) -> None:
    """A title on the left above the axes, a note on the right."""
    axes.set_title(title or "", loc="left", fontsize=12, fontweight="bold", pad=pad)
    if note:
        axes.set_title(note, loc="right", fontsize=9, color=NOTE, pad=pad)


def below(axes: Axes, text: str, linespacing: float | None = None) -> None:
    """A caption under the axes."""
    axes.text(0, 0, text, transform=axes.transAxes, va="top", fontsize=9, color=NOTE, linespacing=linespacing)


def clean(axes: Axes) -> None:
    """No frame, and what is drawn above the grid."""
    for side in ("top", "right", "left"):
        axes.spines[side].set_visible(False)
    axes.set_axisbelow(True)


def as_times(ticks: npt.NDArray[np.int64], *, dated: bool) -> npt.NDArray[Any]:
    """Ticks as the axis counts them: dates of UTC, or the numbers that they are."""
    return ticks.astype("datetime64[us]") if dated else ticks


def label_time(axes: Axes, times: npt.NDArray[Any]) -> None:
    """Name the axis of these times, and put marks at round ones."""
    import matplotlib.dates
    from matplotlib.ticker import MaxNLocator

    dates: Any = matplotlib.dates  # its classes are untyped

    if np.issubdtype(times.dtype, np.datetime64):
        locator = dates.AutoDateLocator(minticks=4, maxticks=9)
        axes.xaxis.set_major_locator(locator)
        axes.xaxis.set_major_formatter(dates.ConciseDateFormatter(locator))
        axes.set_xlabel("time (UTC)")
    else:
        axes.xaxis.set_major_locator(MaxNLocator(nbins=9, integer=True))
        axes.ticklabel_format(axis="x", style="plain", useOffset=False)
        axes.set_xlabel("time")


def draw_legend(axes: Axes, palette: Mapping[str, str], spans_label: str | None = None) -> None:
    """A legend of variables to the right of the picture."""
    from matplotlib.patches import Patch

    handles = [dot(name, colour) for name, colour in palette.items()]
    if spans_label:
        handles.append(Patch(color=PALETTE[1], alpha=0.25, label=spans_label))
    if handles:
        legend_beside(axes, handles, labelcolor=INK, handletextpad=0.5)


def dot(name: str, colour: str, size: float = 6) -> Any:
    """An entry of a legend."""
    from matplotlib.lines import Line2D

    return Line2D([], [], linestyle="none", marker="o", markersize=size, color=colour, label=name)


def legend_beside(axes: Axes, handles: list[Any], **look: Any) -> None:
    axes.legend(handles=handles, loc="upper left", bbox_to_anchor=(1.005, 1.02), frameon=False, fontsize=9, **look)


# ------------------------------------------------------------------------------------------------- shapes


def paint(axes: Axes, drawing: Drawing) -> None:
    """Put shapes into axes that show all of them."""
    for shape in drawing.shapes:
        _paint_one(axes, shape)
    fit(axes, drawing.low, drawing.high)


def _paint_one(axes: Axes, shape: Shape) -> None:
    from matplotlib.patches import Circle

    match shape:
        case Disc():
            look = {"facecolor": shape.fill, "edgecolor": shape.rim, "linewidth": shape.width}
            axes.add_patch(Circle(shape.centre, shape.radius, zorder=shape.level, **look))
        case Arrow():
            _paint_arrow(axes, shape)
        case Dot():
            x, y = shape.centre
            axes.plot([x], [y], marker="o", markersize=4, color=shape.colour, zorder=3)
        case Words():
            _paint_words(axes, shape)


def _paint_arrow(axes: Axes, arrow: Arrow) -> None:
    from matplotlib.patches import FancyArrowPatch
    from matplotlib.path import Path as Curve

    step = {2: Curve.LINETO, 3: Curve.CURVE3, 4: Curve.CURVE4}[len(arrow.points)]
    axes.add_patch(
        FancyArrowPatch(
            path=Curve(list(arrow.points), [Curve.MOVETO] + [step] * (len(arrow.points) - 1)),
            arrowstyle="-|>,head_length=5,head_width=2.6",
            color=arrow.colour,
            linestyle=(0, (4, 2)) if arrow.dashed else "solid",
            linewidth=1.3,
            zorder=2,
        )
    )


def _paint_words(axes: Axes, words: Words) -> None:
    given: dict[str, Any] = {"ha": "center", "va": words.upright, "fontsize": words.size}
    if words.colour is not None:
        given["color"] = words.colour
    if words.bold:
        given["fontweight"] = "bold"
    if words.box is not None:
        fill, rim = words.box
        given["bbox"] = {"boxstyle": "round,pad=0.3", "facecolor": fill, "edgecolor": rim, "linewidth": 1.0}
    if words.level is not None:
        given["zorder"] = words.level
    axes.text(*words.place, words.text, **given)

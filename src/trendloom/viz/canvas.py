"""What all pictures share: a palette that colour-blind readers can tell apart, the pen for shapes, and saving a figure.

Figures are made without pyplot, so drawing changes no global state and needs no display. The ending of the file name
chooses SVG or PNG; the same input gives the same SVG, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendloom.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure


# What a picture is made of, as data: circles, curves and words in a plane, before anybody has a pen.
#
# A picture that files and the page both show is computed once as shapes; `canvas.paint` puts them into a file with
# Matplotlib, `dashboard.figures` onto the page with Plotly. One unit is one inch. Shapes stand in the order in which
# they are drawn, those of a higher `level` above the others.


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

_STYLE: dict[str, Any] = {
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


def style() -> Any:
    """Settings to draw and save under: `with matplotlib.rc_context(style())` (which wants its keys as literals)."""
    return dict(_STYLE)


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


def save(figure: Figure, target: Path) -> Path:
    metadata = {"Date": None} if target.suffix.lower() == ".svg" else {"Software": None}
    figure.savefig(target, dpi=160, metadata=metadata, facecolor="white", bbox_inches="tight", pad_inches=0.15)
    return target


# ------------------------------------------------------------------------------------------------- shapes


def paint(axes: Axes, drawing: Drawing) -> None:
    """Put shapes into axes. One unit is one inch in every picture, so circles and letters keep their proportion."""
    for shape in drawing.shapes:
        _paint_one(axes, shape)
    (left, low), (right, high) = drawing.low, drawing.high
    axes.set_xlim(left, right)
    axes.set_ylim(low, high)
    axes.figure.set_size_inches(right - left, high - low)  # type: ignore[union-attr]


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

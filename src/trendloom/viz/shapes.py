"""What a picture is made of, as data: circles, curves and words in a plane, before anybody has a pen.

A picture that files and the page both show is computed once as shapes; `canvas.paint` puts them into a file with
Matplotlib, `dashboard.figures` onto the page with Plotly. One unit is one inch. Shapes stand in the order in which they
are drawn, those of a higher `level` above the others.
"""

from __future__ import annotations

from dataclasses import dataclass

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

"""What all pictures share: a palette that colour-blind readers can tell apart, an empty figure, and saving it.

Figures are made without pyplot, so drawing changes no global state and needs no display. The ending of the file name
chooses SVG or PNG; the same input gives the same SVG, byte for byte.
"""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from trendloom.errors import OptionError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

PALETTE = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#8C6D31", "#5E4FA2", "#7F7F7F")
"""After Okabe and Ito, without their yellow (invisible on white) and vermilion (kept for what is forbidden)."""

FORBIDDEN = "#D55E00"
INK = "#222222"
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

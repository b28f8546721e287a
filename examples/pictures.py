"""Draw the pictures of README and docs: `python examples/pictures.py`, after `make demo`.

The outages are those of the demo and need its events; the other pictures need nothing.
"""

from __future__ import annotations

import shutil
from pathlib import Path

import pyarrow as pa

import trendloom as tl
from trendloom.viz.aggregation import draw_panes, draw_running
from trendloom.viz.query import draw_query_pattern, plan_of
from trendloom.viz.timeline import draw_matches

ROOT = Path(__file__).resolve().parent.parent
PICTURES = ROOT / "docs" / "pictures"

VALUES = pa.table(
    {
        "time": [1, 2, 3, 4],
        "type": ["B"] * 4,
        "id": ["b1", "b2", "b3", "b4"],
        "val": [10.0, 20.0, 15.0, 25.0],
    }
)
RISING = "PATTERN B+ b[]  SEMANTICS {}  WHERE b[i].val >= b[i-1].val AND count(b[]) >= 2"

PATTERNS = {
    "sequence": "PATTERN SEQ(Shelf a, NOT CheckOut b, Exit c)  WHERE [tag_id]  WITHIN 12 hours",
    "nested": "PATTERN (SEQ(A+, B))+",
    "choice": "PATTERN SEQ(A, AND(B, C), (D | E)?)",
}
COLUMNS = pa.schema({"time": pa.timestamp("us"), "type": pa.string(), "tag_id": pa.int64(), "location": pa.string()})

COUNTED = {
    "running-numbers": ("SEQ(A+, B)", "a1 a2 b3 a4 b5"),
    "not-progress": ("SEQ(A+, NOT SEQ(C, D), B)", "a1 c2 a3 b4 d5 b6"),
}
IN_PANES = "a1 a2 b3 b4 a5 a6 a8 b9 a10 b13 a14 b15"


def draw_semantics() -> None:
    """The same rising values, found in three ways."""
    for semantics in ("skip-till-any-match", "skip-till-next-match", "contiguous"):
        rows = tl.run(RISING.format(semantics), VALUES).to_pylist()
        matches = [[(event["time"], event["val"], event["var"]) for event in row["events"]] for row in rows]
        draw_matches(VALUES, matches, PICTURES / f"{semantics}.svg", value="val", title=semantics)


def draw_patterns() -> None:
    for name, text in PATTERNS.items():
        title = text.split("  ")[0].removeprefix("PATTERN ")
        draw_query_pattern(plan_of(text, COLUMNS), PICTURES / f"{name}.svg", title=title)


def draw_counting() -> None:
    """The running numbers of docs/aggregation.md, event by event and by panes."""
    for name, (pattern, text) in COUNTED.items():
        events = stream(text)
        plan = plan_of(f"RETURN COUNT(*)  PATTERN {pattern}", events)
        draw_running(plan, events, PICTURES / f"{name}.svg", title=pattern)
    query, events = "SEQ(A+, B)  WITHIN 8 SLIDE 4", stream(IN_PANES)
    draw_panes(plan_of(f"RETURN COUNT(*)  PATTERN {query}", events), events, PICTURES / "panes.svg", title=query)


def stream(text: str) -> pa.Table:
    """`a1 b2`: an event of type A at time 1, one of type B at time 2."""
    words = text.split()
    times, types = [int(word[1:]) for word in words], [word[0].upper() for word in words]
    return pa.table({"time": times, "type": types, "id": words})


def copy_outages(demo: Path) -> None:
    for made, kept in (("pattern", "outages"), ("matches", "outages-found")):
        shutil.copyfile(demo / f"{made}.png", PICTURES / f"{kept}.png")


def main() -> None:
    PICTURES.mkdir(exist_ok=True)
    draw_semantics()
    draw_patterns()
    draw_counting()
    demo = ROOT / "demo-output"
    if (demo / "pattern.png").exists():
        copy_outages(demo)
    else:
        print("the outages need the results of the demo: make demo")


if __name__ == "__main__":
    main()

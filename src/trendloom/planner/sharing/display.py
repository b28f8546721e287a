"""What queries may share and what was decided, for EXPLAIN: candidates, conflicts, the plan, the ways to run it.

Long lists are cut: the heaviest segments are shown, and how many more there are. Cost: O(segments · log segments), and
pairs of those that are shown.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import combinations

from trendloom.logical.display import Branch
from trendloom.model.amounts import show_names
from trendloom.planner.sharing.conflict_graph import SharedSegment, members
from trendloom.planner.sharing.groups import Considered, Way

MOST_SEGMENTS = 12
"""So many segments, and so many conflicts, are shown."""
MOST_NAMES = 5
"""So many queries are named."""


def describe_sharing(considered: Considered) -> Branch:
    """What was weighed for a group of queries, and what came of it."""
    below = (*_segments(considered), _ways(considered))
    return Branch("sharing", f"among {named(considered, range(len(considered.names)))}", below)


def show_segment(considered: Considered, segment: SharedSegment) -> str:
    """The steps of a segment as people write them."""
    query, first = segment.places[0]
    return f"SEQ({', '.join(considered.patterns[query][first : first + len(segment.steps)])})"


def show_score(considered: Considered, number: float) -> str:
    """A benefit; in full where it is short."""
    shown = f"{number:.3g}" if abs(number) >= 1e6 else f"{number:,.2f}".rstrip("0").rstrip(".")
    return shown + considered.unit


def show_seconds(number: float) -> str:
    """Seconds, or thousandths where there are few."""
    return f"{number:,.2f} s" if number >= 1 else f"{number * 1000:,.3g} ms"


def named(considered: Considered, queries: Iterable[int]) -> str:
    """Some queries by their names, of many the first ones."""
    return show_names([considered.names[query] for query in sorted(queries)], MOST_NAMES)


def heaviest(considered: Considered, some: int) -> list[int]:
    """Segments, given as bits, by their numbers, those that save most first; of the options of a segment the best."""
    graph = considered.choice.graph
    best: dict[tuple[object, ...], int] = {}
    for vertex in sorted(members(some), key=lambda vertex: -graph.weights[vertex]):
        best.setdefault(graph.segments[vertex].steps, vertex)
    return list(best.values())


# ------------------------------------------------------------------------------------------------ segments


def _segments(considered: Considered) -> Iterator[Branch]:
    choice, graph = considered.choice, considered.choice.graph
    if not graph.segments:
        yield Branch("segments", f"{choice.mined} in common, which save nothing" if choice.mined else "none in common")
        return
    saving, options = len(heaviest(considered, graph.all)), len(graph.segments)
    fewer = f"; all or some of their queries can share them, in {options} ways" if options > saving else ""
    text = f"{choice.mined} in common, {saving} of which save work{fewer}"
    yield Branch("segments", text, _listed(considered, graph.all))
    yield _conflicts(considered)
    yield _reduction(considered)
    greedy, certain = (show_score(considered, one) for one in (graph.weight(choice.greedy), choice.guaranteed))
    yield Branch("greedy", f"saves {greedy}; at least {certain} was certain beforehand")
    yield Branch("plan", _score(considered), _listed(considered, choice.found.plan))


def _listed(considered: Considered, some: int) -> tuple[Branch, ...]:
    """Segments with what they save, the heaviest alone if there are many."""
    graph = considered.choice.graph
    found = heaviest(considered, some)
    shown = [
        Branch(
            show_segment(considered, segment),
            f"saves {show_score(considered, weight)}: {named(considered, segment.queries)}",
        )
        for segment, weight in ((graph.segments[vertex], graph.weights[vertex]) for vertex in found[:MOST_SEGMENTS])
    ]
    return _with_rest(shown, len(found))


def _with_rest(shown: Sequence[Branch], count: int) -> tuple[Branch, ...]:
    return (*shown, *([Branch(f"and {count - len(shown)} more")] if count > len(shown) else []))


def _conflicts(considered: Considered) -> Branch:
    """Pairs that exclude each other, those of the heaviest segments first, and the number of the others."""
    graph = considered.choice.graph
    heavy = heaviest(considered, graph.all)
    options = len(graph.segments) > len(heavy)
    pairs = [(one, other) for one, other in combinations(heavy[: 2 * MOST_SEGMENTS], 2) if graph.near[one] >> other & 1]
    shown = [_conflict(considered, one, other) for one, other in pairs[:MOST_SEGMENTS]]
    count = sum(near.bit_count() for near in graph.near) // 2
    text = f"{count:,} pair{'' if count == 1 else 's'}{' of ways to share' if options else ''}"
    return Branch("conflicts", text, _with_rest(shown, count))


def _conflict(considered: Considered, one: int, other: int) -> Branch:
    first, second = considered.choice.graph.segments[one], considered.choice.graph.segments[other]
    both = f"{show_segment(considered, first)} and {show_segment(considered, second)}"
    return Branch(both, f"overlap in {named(considered, first.conflicts_in(second))}")


def _reduction(considered: Considered) -> Branch:
    """What is in or out of the best plan without a search."""
    found = considered.choice.reduction
    sides = [("in for certain", found.certain), ("out for certain", found.pruned)]
    below = [Branch(name, f"{some.bit_count()}", _listed(considered, some)) for name, some in sides if some]
    left = found.left.bit_count()
    return Branch("reduction", f"leaves {left} of {len(considered.choice.graph.segments)} in question", tuple(below))


def _score(considered: Considered) -> str:
    found = considered.choice.found
    saved = f"saves {show_score(considered, found.weight)} (0 without sharing)"
    if found.bound == float("inf"):
        return f"{saved}; not all segments were weighed"
    bound = "" if found.is_best else f" than {show_score(considered, found.bound)}"
    return f"{saved}; no plan saves more{bound}"


# ---------------------------------------------------------------------------------------------------- ways


def _ways(considered: Considered) -> Branch:
    """The ways to run the queries, and why one was taken."""
    known = all(way.seconds is not None for way in considered.ways)
    why = "least time by estimate" if known else "times are not known without figures of the events"
    below = [_way(way, taken=number == considered.taken) for number, way in enumerate(considered.ways)]
    return Branch("way", f"{considered.way.name}: {why}{_beside(considered)}", tuple(below))


def _beside(considered: Considered) -> str:
    """What it took, beside the estimate."""
    if considered.measured is None:
        return ""
    guess = considered.way.seconds
    factor = f", {considered.measured / guess:.2g} × the estimate" if guess else ""
    return f"; it took {show_seconds(considered.measured)}{factor}"


def _way(way: Way, *, taken: bool) -> Branch:
    seconds = "not estimated" if way.seconds is None else f"about {show_seconds(way.seconds)}"
    return Branch(way.name, f"{seconds}{', taken' if taken else ''}")

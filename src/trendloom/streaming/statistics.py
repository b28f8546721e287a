"""Statistics of a live stream: figures of its micro-batches so far, added up and kept beside its checkpoint.

Counted while the stream is read (`engines.spark.streaming.batch_figures`); a batch that is repeated is counted once.
Numbers of keys and values are known batch by batch, and the most of any batch is kept: a lower bound.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Self

import pyarrow.fs as fs

from trendloom.io.files import place
from trendloom.logical.plan import Attributes, Plan
from trendloom.logical.statistics import UNKNOWN, KeySpread, Origin, Statistics
from trendloom.optimizer import optimize
from trendloom.pattern.algebra import atoms

NAME = "trendloom-statistics.json"
"""The file beside the checkpoint."""


@dataclass(frozen=True)
class Figures:
    """What was counted in the batches up to number `batch`; times are microseconds since 1970.

    `fitting`: by query, the events that fit each position that has conditions of its own. `domains`: distinct values by
    type and column, of columns that equalities compare.
    """

    batch: int = -1
    events: int = 0
    first: int | None = None
    last: int | None = None
    types: Mapping[str, int] = field(default_factory=dict)
    keys: Mapping[Attributes, int] = field(default_factory=dict)
    fitting: Mapping[tuple[str, int], int] = field(default_factory=dict)
    domains: Mapping[tuple[str, str], int] = field(default_factory=dict)

    def and_(self, later: Figures) -> Figures:
        """Together with those of later batches; what is known already does not count again."""
        if later.batch <= self.batch:
            return self
        firsts = [one for one in (self.first, later.first) if one is not None]
        lasts = [one for one in (self.last, later.last) if one is not None]
        return Figures(
            later.batch,
            self.events + later.events,
            min(firsts, default=None),
            max(lasts, default=None),
            _added(self.types, later.types),
            _greater(self.keys, later.keys),
            _added(self.fitting, later.fitting),
            _greater(self.domains, later.domains),
        )

    def text(self) -> str:
        """As it is kept."""
        return json.dumps(
            {
                "batch": self.batch,
                "events": self.events,
                "first": self.first,
                "last": self.last,
                "types": dict(self.types),
                "keys": [[list(names), count] for names, count in self.keys.items()],
                "fitting": [[query, position, count] for (query, position), count in self.fitting.items()],
                "domains": [[kind, column, count] for (kind, column), count in self.domains.items()],
            },
            indent=2,
        )

    @classmethod
    def of_text(cls, text: bytes) -> Self:
        found: dict[str, Any] = json.loads(text)
        return cls(
            found["batch"],
            found["events"],
            found["first"],
            found["last"],
            found["types"],
            {tuple(names): count for names, count in found["keys"]},
            {(query, position): count for query, position, count in found["fitting"]},
            {(kind, column): count for kind, column, count in found.get("domains", ())},
        )


def _added(some: Mapping[Any, int], more: Mapping[Any, int]) -> dict[Any, int]:
    return {one: some.get(one, 0) + more.get(one, 0) for one in {**some, **more}}


def _greater(some: Mapping[Any, int], others: Mapping[Any, int]) -> dict[Any, int]:
    return {one: max(some.get(one, 0), others.get(one, 0)) for one in {**some, **others}}


def figures_at(checkpoint: str) -> Figures:
    """The figures of earlier batches of a stream; none where there were none, or where they cannot be read."""
    system, folder = place(checkpoint)
    path = f"{folder}/{NAME}"
    if system.get_file_info(path).type is not fs.FileType.File:
        return Figures()
    try:
        with system.open_input_stream(path) as source:
            return Figures.of_text(source.read())
    except (ValueError, KeyError, TypeError):  # no answer depends on them
        return Figures()


def keep_figures(figures: Figures, checkpoint: str) -> None:
    """Put figures beside a checkpoint; readers see the old ones or these."""
    system, folder = place(checkpoint)
    system.create_dir(folder, recursive=True)
    with system.open_output_stream(f"{folder}/.{NAME}.part") as sink:
        sink.write(figures.text().encode())
    system.move(f"{folder}/.{NAME}.part", f"{folder}/{NAME}")


def statistics_of_batches(plan: Plan, figures: Figures) -> Statistics:
    """Statistics for a bound query over the stream whose batches had these figures."""
    if not figures.events:
        return UNKNOWN
    found = Statistics(Origin.BATCHES, figures.events, types=dict(figures.types))
    tick = plan.schema.axis.tick
    if figures.first is not None and figures.last is not None:
        found = replace(found, first=figures.first // tick, last=figures.last // tick)
    plan = optimize(plan)  # conditions have found their positions
    tested = {position for position, _ in plan.filters}
    fitting: dict[int, float] = {}
    for atom in atoms(plan.pattern):
        known = (
            figures.fitting.get((plan.name or "", atom.position))
            if atom.position in tested
            else figures.types.get(atom.type)
        )
        if known is not None:
            fitting[atom.position] = known
    keys = {names: KeySpread(count) for names, count in figures.keys.items()}
    domains = {one: float(count) for one, count in figures.domains.items()}
    return replace(found, keys=keys, fitting=fitting, domains=domains)

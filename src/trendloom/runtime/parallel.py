"""A kernel on several cores: the keys of a block are divided among threads, or the time where there are few keys.

Compiled kernels release Python's lock, so threads run side by side over views of one block. A key is never divided
between threads unless time is: then the contract of live streams applies, and a thread receives what a step of a stream
would that had come so far and was loaded there. Results leave in the order of the parts, whichever thread is
done first, and only so many wait for those before them, so memory stays bounded. Batches of rows are made by threads in
the same manner, a few ahead of the reader. Before all that columns are divided into slices (`expr.arrays`).

Cost: that of the kernel over the parts; parts of time overlap by what a result can reach back.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from threading import Condition
from typing import Any, TypeVar

import numpy as np

from trendloom.expr.arrays import Array, in_context, side_by_side
from trendloom.kernels.columns.block import Block
from trendloom.kernels.contract import Divisible, Expected, Failed, Kernel, OnProgress
from trendloom.kernels.contract.aggregates import Totals
from trendloom.kernels.contract.matches import Matches

Result = TypeVar("Result")

LEAST = 1 << 17
"""Events of a part: fewer are not worth the preparations that every part needs."""
PARTS = 4
"""Parts for every thread, at most, so that one that takes longer than the others delays them little. Kernels that add
up take about as long for each event, so there one is enough.
"""
AHEAD = 1
"""Results that are ready before they are read, besides those that threads work on."""
WAITING = 1 << 22
"""Entries of results that wait for the parts before them."""
OVERLAP = 8
"""Parts of time are at least so many times as long as what they share with the part before."""


@dataclass(frozen=True, eq=False)
class Portion:
    """Some events of a block: from `low` on those of the keys from `key` on, or `events` by their numbers.

    Results that were certain at the watermark `before` belong to an earlier part, those that are not at `until` to a
    later one.
    """

    block: Block
    low: int = 0
    key: int = 0
    before: int | None = None
    until: int | None = None
    events: Array | None = None

    def start(self, kernel: Kernel[Any, Any]) -> Any:
        """A state in which everything before was returned."""
        return kernel.start() if self.before is None else kernel.load(None, self.before)

    def results(self, kernel: Kernel[Any, Any], state: Any, on_progress: OnProgress | None) -> Iterator[Any]:
        """The results of this part, in numbers of the whole block."""
        if self.until is None:
            found = kernel.finish(state, on_progress)
        else:
            found, _ = kernel.step(self.start(kernel), self.block, self.until)
        return map(self._renumbered, found)

    def _renumbered(self, found: Totals | Matches | Failed) -> Totals | Matches | Failed:
        if isinstance(found, Failed):
            return found
        if isinstance(found, Totals):
            return replace(found, key=found.key + self.key) if self.key else found
        if self.events is not None:
            return replace(found, events=self.events[found.events])
        return replace(found, events=found.events + self.low) if self.low else found


def made_ahead(make: Callable[..., Result], arguments: Sequence[tuple[Any, ...]], threads: int) -> Iterator[Result]:
    """What a function makes of each of some arguments, in their order; threads are a few of them ahead."""
    if threads < 2 or len(arguments) < 2:
        yield from (make(*given) for given in arguments)
        return
    made: deque[Future[Result]] = deque()
    with ThreadPoolExecutor(threads, thread_name_prefix="trendloom") as pool:
        try:
            for given in arguments:
                made.append(pool.submit(in_context(make), *given))
                if len(made) > threads + AHEAD:
                    yield made.popleft().result()
            while made:
                yield made.popleft().result()
        finally:
            for one in made:
                one.cancel()


class Run:
    """A kernel over the parts of a block: the expected number of results, then the results."""

    def __init__(self, kernel: Kernel[Any, Any], block: Block, threads: int = 1) -> None:
        self.kernel, self.threads = kernel, threads
        self.parts = divided(kernel, block, threads)
        self.states = [kernel.step(part.start(kernel), part.block, None)[1] for part in self.parts]

    def expected(self, *, beforehand: bool) -> Expected | None:
        """How many results there will be; None: not known."""

        def expected(state: Any) -> Expected | None:
            found: Expected | None = self.kernel.expected(state, beforehand=beforehand)
            return found

        if len(self.parts) == 1:
            return expected(self.states[0])
        with ThreadPoolExecutor(self.threads) as pool:
            found = list(pool.map(in_context(expected), self.states))
        known: list[Expected] = [one for one in found if one is not None]
        if len(known) < len(found):  # a sum over some of the parts would be no bound
            return None
        number = sum(one.number for one in known)
        if any(part.until is not None for part in self.parts):  # parts overlap in time: some matches are counted twice
            if known[0].tried is not None:
                return None
            return replace(known[0], number=number, exact=False, least=max(one.least for one in known))
        return replace(known[0], number=number, least=sum(one.least for one in known))

    def results(self, on_progress: OnProgress | None = None) -> Iterator[Any]:
        """All results, in the order of the parts."""
        if len(self.parts) == 1:
            yield from self.parts[0].results(self.kernel, self.states[0], on_progress)
            return
        both = zip(self.parts, self.states, strict=True)
        jobs = [partial(part.results, self.kernel, state, on_progress) for part, state in both]
        yield from _in_turn(jobs, self.threads)


class _Done:
    """The end of a part's results, with what went wrong if anything did."""

    size = 0

    def __init__(self, error: BaseException | None = None) -> None:
        self.error = error


class _Waiting:
    """Results that wait for their part's turn: so many entries of all parts together, and one of the part in turn."""

    def __init__(self, parts: int) -> None:
        self._changed = Condition()
        self._found: list[deque[Any]] = [deque() for _ in range(parts)]
        self._turn, self._size, self.stopped = 0, 0, False

    def put(self, part: int, found: Any) -> None:
        """Give a result; wait while there are too many, unless all has stopped."""
        with self._changed:
            self._changed.wait_for(lambda: self.stopped or self._size < WAITING or self._in_turn(part))
            self._found[part].append(found)
            self._size += found.size
            self._changed.notify_all()

    def _in_turn(self, part: int) -> bool:
        return part == self._turn and not self._found[part]

    def take(self, part: int) -> Any:
        """The next result of a part, whose turn it is."""
        with self._changed:
            self._turn = part
            self._changed.notify_all()
            self._changed.wait_for(lambda: self._found[part])
            found = self._found[part].popleft()
            self._size -= found.size
            self._changed.notify_all()
            return found

    def stop(self) -> None:
        """Wake up all threads that wait: no more results are read."""
        with self._changed:
            self.stopped = True
            self._changed.notify_all()


def _in_turn(jobs: Sequence[Callable[[], Iterator[Any]]], threads: int) -> Iterator[Any]:
    """The results of all jobs, job by job, found by that many threads."""
    waiting = _Waiting(len(jobs))

    def work(number: int) -> None:
        try:
            for found in jobs[number]() if not waiting.stopped else ():
                waiting.put(number, found)
                if waiting.stopped:
                    break
            waiting.put(number, _Done())
        except BaseException as error:
            waiting.put(number, _Done(error))

    with ThreadPoolExecutor(threads, thread_name_prefix="trendloom") as pool:
        try:
            for number in range(len(jobs)):
                pool.submit(in_context(work), number)
            for number in range(len(jobs)):
                while not isinstance(found := waiting.take(number), _Done):
                    yield found
                if found.error is not None:
                    raise found.error
        finally:
            waiting.stop()


# -------------------------------------------------------------------------------------------------- dividing


def divided(kernel: Kernel[Any, Any], block: Block, threads: int) -> list[Portion]:
    """Parts of a block for so many threads: by key where there are enough, else by time where results allow it."""
    count = min(threads if kernel.adds_up else threads * PARTS, len(block) // LEAST)
    if threads < 2 or count < 2 or kernel.light:
        return [Portion(block)]
    by_key = _by_key(block, count) if Divisible.BY_KEY in kernel.divisible else [Portion(block)]
    if len(by_key) >= threads or Divisible.BY_TIME not in kernel.divisible:
        return by_key
    return _by_time(kernel, block, count, threads) or by_key


def _by_key(block: Block, count: int) -> list[Portion]:
    """Neighbouring keys with about equally many events, as views."""
    wanted = np.linspace(0, len(block), count + 1)[1:-1]
    bounds = np.unique(np.r_[0, np.searchsorted(block.key_starts, wanted), block.keys])
    return [
        Portion(block.of_keys(first, last), int(block.key_starts[first]), int(first))
        for first, last in zip(bounds[:-1].tolist(), bounds[1:].tolist(), strict=True)
        if block.key_starts[last] > block.key_starts[first]
    ]


def _by_time(kernel: Kernel[Any, Any], block: Block, count: int, threads: int) -> list[Portion]:
    """Stretches of time with about equally many events; [] where a result reaches back too far for that."""
    emission = kernel.emission
    if emission.window.within is None or emission.pane is not None:
        return []
    times = np.sort(block.time[:: max(len(block) >> 16, 1)])
    cuts = np.unique(times[np.linspace(0, len(times) - 1, count + 1).astype(np.int64)[1:-1]]).tolist()
    shared = emission.window.within + 2 * emission.slack
    if not cuts or min(np.diff([int(times[0]), *cuts, int(times[-1])])) < OVERLAP * shared:
        return []

    def part(before: int | None, until: int | None) -> Portion:
        wanted = np.ones(len(block), np.bool_)
        if before is not None:
            wanted &= block.time >= emission.needs(before)
        if until is not None:
            wanted &= block.time < until
        return Portion(block.only(wanted), before=before, until=until, events=np.flatnonzero(wanted))

    return side_by_side(part, list(zip([None, *cuts], [*cuts, None], strict=True)), threads)

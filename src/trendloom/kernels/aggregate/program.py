"""A pattern as linear algebra: slots that hold running aggregates, and for every kind of event a matrix on them.

A *slot* is a set of partial matches that behave alike from now on: those that end at a state of the template and,
where a NOT can still spoil them, have seen equally much of it. Under skip-till-any-match an event of a kind adds to
the slot of each state it can enter the sum of the slots that lead there. Under skip-till-next-match the slots it
takes from are emptied, under contiguous all are. An event at a position that EXISTS hides takes the place of what its
slot held (`Existence`). Events of a NOT move slots along; what can no longer become part of a match is dropped. So
every kind of event is a matrix of small integers, whatever the semantics: `Program.entering` + `Program.moving`.

Linear measures ride along: each slot has one more number per measure, to which entering adds weight · matches.
Slots depend on the pattern alone, never on the events, so matrices of different tasks fit together.
See Poppe, "Event Stream Analytics", ch. 15 and 16; Qi, Cao, Ray, Rundensteiner, "Complex Event Analytics".
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import chain, combinations
from typing import Any

from trendloom.kernels.contract.pattern_spec import PatternSpec
from trendloom.kernels.matching.automaton import Automaton, Step
from trendloom.pattern.template import Crossings

Node = int | None  # a state of the template; None: the start, or the end
FREE = (frozenset[Any](),)
"""The ways of a step that crosses no NOT."""


@dataclass(frozen=True, eq=False)
class Existence:
    """Whether hidden positions of EXISTS are plain tests of existence, so that remainders are counted without a match.

    Of several events that could take a hidden place in a match one is enough, and the latest is as good as any:
    whatever could stand before an earlier one stands before it too, and no NOT after it sees more. So the number of
    remainders that wait at a hidden position is *set* at each event that fits there, to that of all that could stand
    before it, instead of added to. That is still a matrix. Events of one instant set it once (`one_per_instant`).

    It is right under skip-till-any-match where a remainder can come about in one way only, and no NOT lies right before
    a hidden position: then an earlier event may be better. A hidden event that can repeat is bound once, and one that
    can be missing, with no NOT beside it, need not be there at all (`needless`).
    """

    automaton: Automaton

    @cached_property
    def hidden(self) -> frozenset[int]:
        """The states at hidden positions."""
        positions = self.automaton.spec.scopes[0].template.position_of
        return frozenset(state for state, position in enumerate(positions) if position in self.automaton.spec.hidden)

    @cached_property
    def needless(self) -> frozenset[int]:
        """Hidden states past which a step without NOTs leads from everything before them to everything after."""
        found: set[int] = set()
        for state in sorted(self.hidden):
            others = [one for one in (None, *range(len(self.automaton.moves[0]))) if one != state and one not in found]
            before = [one for one in others if self._leads(one, state)]
            after = [one for one in others if one is not None and self._leads(state, one)]
            ends: list[Node] = [None] if self._ends(state) else []
            if all(self._free(source, target) for source in before for target in [*after, *ends]):
                found.add(state)
        return frozenset(found)

    def takes(self, source: Node, step: Step) -> bool:
        """Whether a step has to be taken to count remainders."""
        return step.target not in self.needless and not (step.target == source and step.target in self.hidden)

    @cached_property
    def obstacle(self) -> str | None:
        """Why remainders cannot be counted in this way; None: they can."""
        spec = self.automaton.spec
        if not self.hidden:
            return None
        if spec.earliest or spec.adjacent:
            return "EXISTS hides events of runs, and different runs can have equal remainders"
        if any(spec.places[position].branch for position in spec.hidden):
            return "EXISTS hides a part of an AND"
        needed = self.hidden - self.needless
        for source in (None, *range(len(self.automaton.moves[0]))):
            steps = [step for step in self._steps(source) if self.takes(source, step)]
            if any(step.target in needed and step.ways != FREE for step in steps):
                return "a NOT stands right before an event that EXISTS hides"
            if source not in self.hidden and (obstacle := self._through(source)) is not None:
                return obstacle
        return None

    def _through(self, source: Node) -> str | None:
        """What is wrong with the ways from a state that is not hidden over hidden ones to those that are not."""
        reached: list[Node] = []
        todo: list[tuple[Node, frozenset[int]]] = [(source, frozenset())]
        while todo:
            state, passed = todo.pop()
            if state is not None and self._ends(state):
                reached.append(None)
            for step in self._steps(state):
                if not self.takes(state, step):
                    continue
                if step.target in passed:
                    return "EXISTS hides the whole of a repeated part"
                if step.target in self.hidden:
                    todo.append((step.target, passed | {step.target}))
                else:
                    reached.append(step.target)
        if source is None and None in reached:
            return "EXISTS may hide all events of a match"
        if len(set(reached)) < len(reached):
            return "a remainder of EXISTS can come about in several ways"
        return None

    def _steps(self, source: Node) -> list[Step]:
        return self.automaton.starts[0] if source is None else self.automaton.moves[0][source]

    def _leads(self, source: Node, target: int) -> bool:
        return any(step.target == target for step in self._steps(source))

    def _ends(self, state: int) -> bool:
        return bool(self.automaton.spec.scopes[0].template.accepts[state])

    def _free(self, source: Node, target: Node) -> bool:
        """Whether a step leads there that crosses no NOT; nothing is at its end before it has begun."""
        if target is None:
            return source is not None and frozenset() in self.automaton.spec.scopes[0].template.accepts[source]
        return any(step.target == target and step.ways == FREE for step in self._steps(source))


MOST_NOT_POSITIONS = 6
MOST_SLOTS = 64

Progress = frozenset[int] | None  # states that matches of a NOT have reached; None: one has ended
Tag = tuple[tuple[int, Progress], ...]  # by scope
Positions = frozenset[int]


@dataclass(frozen=True)
class Slot:
    """Partial matches that end in `state` (None: not begun; the empty match), of which NOTs have seen `tag`.

    `ended`: complete matches that no event takes away any more (next and contiguous).
    """

    state: int | None
    tag: Tag
    ended: bool = False


def obstacle(automaton: Automaton) -> str | None:
    """Why the pattern of a machine is not such an algebra, or None. Rules on adjacent events are not looked at."""
    pattern_spec = automaton.spec
    if automaton.ambiguous:
        return "there are several ways to derive a match"
    for scope in pattern_spec.scopes[1:]:
        if scope.parent != 0 or scope.outer or scope.rules or scope.open_ended or scope.branch:
            return "a NOT has conditions or NOTs of its own"
        steps = [*automaton.starts[scope.number], *chain.from_iterable(automaton.moves[scope.number])]
        if any(step.may_tie for step in steps):
            return "a NOT holds an AND"
    if _shares_ties(pattern_spec, automaton):
        return "parts of an AND can bind the same event"
    if (hiding := Existence(automaton).obstacle) is not None:
        return hiding
    if len(pattern_spec.scopes) == 1 and 1 + 2 * len(pattern_spec.scopes[0].template.position_of) <= MOST_SLOTS:
        return None  # without a NOT, a state has two slots at most
    try:
        Program(automaton)
    except OverflowError:
        return f"it needs more than {MOST_SLOTS} running aggregates"
    return None


def _shares_ties(pattern_spec: PatternSpec, automaton: Automaton) -> bool:
    """Whether two events of equal time in one match could be the same event."""
    if not any(step.may_tie for step in automaton.steps):
        return False
    branches: dict[int, dict[str, set[int]]] = {}
    for place in pattern_spec.places:
        for part, operand in place.branch:
            branches.setdefault(part, {}).setdefault(place.type, set()).add(operand)
    return any(len(operands) > 1 for types in branches.values() for operands in types.values())


class Program:
    """The slots of a detection and what every kind of event does to them."""

    def __init__(self, automaton: Automaton) -> None:
        self.automaton, self.spec = automaton, automaton.spec
        self.template = self.spec.scopes[0].template
        self.keeps = not (self.spec.earliest or self.spec.adjacent)
        self.existence = Existence(automaton)
        slots = [slot for slot in dict.fromkeys(self._reachable()) if slot.state not in self.existence.needless]
        useful = self._useful(slots)
        self.slots = tuple(slot for slot in slots if slot in useful)
        if len(self.slots) > MOST_SLOTS:
            raise OverflowError
        self.number = {slot: at for at, slot in enumerate(self.slots)}

    # ---------------------------------------------------------------------------------------- slots

    def _reachable(self) -> Iterator[Slot]:
        begins = [Slot(None, self._fresh(None))]
        for state, ways in enumerate(self.template.accepts):
            begins.append(Slot(state, self._fresh(state)))
            if ways and not self.keeps:
                begins.append(Slot(state, self._fresh(state, ended=True), ended=True))
        for begin in begins:
            seen, todo = {begin}, [begin]
            while todo:
                slot = todo.pop()
                yield slot
                found = {Slot(slot.state, tag, slot.ended) for tag in self._tags_after(slot.tag)}
                todo.extend(sorted(found - seen, key=str))
                seen |= found

    def _tags_after(self, tag: Tag) -> Iterator[Tag]:
        positions = sorted({p for scope, _ in tag for p in self._positions_of(scope)})
        if len(positions) > MOST_NOT_POSITIONS:
            raise OverflowError
        for size in range(1, len(positions) + 1):
            for some in combinations(positions, size):
                yield self._seen(tag, frozenset(some))

    def _positions_of(self, scope: int) -> set[int]:
        return {p for p, place in enumerate(self.spec.places) if place.scope == scope}

    def _fresh(self, state: int | None, *, ended: bool = False) -> Tag:
        """The NOTs that matter to what stands here, nothing seen of them yet."""
        if state is None:
            ways: Iterable[Crossings] = chain.from_iterable(step.ways for step in self.automaton.starts[0])
        else:
            moves = () if ended else (step.ways for step in self.automaton.moves[0][state])
            ends = self.template.accepts[state] if ended or self.keeps else ()
            ways = chain(chain.from_iterable(moves), ends)
        return tuple((scope, frozenset()) for scope in sorted({c.scope for way in ways for c in way}))

    def _seen(self, tag: Tag, positions: Positions) -> Tag:
        """The tag after events that fit these positions, all of one time."""
        return tuple((scope, self._progress(scope, reached, positions)) for scope, reached in tag)

    def _progress(self, scope: int, reached: Progress, positions: Positions) -> Progress:
        if reached is None:
            return None
        steps = [
            *self.automaton.starts[scope],
            *(s for state in sorted(reached) for s in self.automaton.moves[scope][state]),
        ]
        targets = frozenset(step.target for step in steps if step.position in positions)
        accepts = self.spec.scopes[scope].template.accepts
        return None if any(accepts[state] for state in targets) else reached | targets

    def _useful(self, slots: list[Slot]) -> set[Slot]:
        """The slots that can still contribute to a match."""
        useful = {slot for slot in slots if self.accepting(slot)}
        changed = True
        while changed:
            more = {slot for slot in slots if slot not in useful and self._leads_to(slot, useful)}
            useful |= more
            changed = bool(more)
        return useful

    def _leads_to(self, slot: Slot, useful: set[Slot]) -> bool:
        for step in self._steps(slot):
            if any(target in useful for target in self._entered(step.target)):
                return True
        return any(Slot(slot.state, tag, slot.ended) in useful for tag in self._tags_after(slot.tag))

    # ------------------------------------------------------------------------------------- behaviour

    def accepting(self, slot: Slot) -> bool:
        """Whether what it holds at the end of a window are matches."""
        if slot.state is None or slot.ended == self.keeps:
            return False
        return any(self._holds(way, slot.tag) for way in self.template.accepts[slot.state])

    def _holds(self, way: Crossings, tag: Tag) -> bool:
        seen = dict(tag)
        return all(seen[crossing.scope] is not None for crossing in way)

    def _steps(self, slot: Slot) -> list[Step]:
        """The steps that events may take from here."""
        if slot.ended:
            return []
        steps = self.automaton.starts[0] if slot.state is None else self.automaton.moves[0][slot.state]
        taken = (step for step in steps if self.existence.takes(slot.state, step))
        return [step for step in taken if any(self._holds(way, slot.tag) for way in step.ways)]

    def _entered(self, state: int) -> list[Slot]:
        """The slots that a match joins on entering a state."""
        found = [Slot(state, self._fresh(state))]
        if self.template.accepts[state] and not self.keeps:
            found.append(Slot(state, self._fresh(state, ended=True), ended=True))
        return found

    def entering(self, positions: Positions) -> set[tuple[int, int, bool]]:
        """What an event that fits these positions adds: (to slot, from slot, whether from an event of equal time)."""
        found = set()
        for slot in self.slots:
            for step in self._steps(slot):
                if step.position in positions:
                    targets = [target for target in self._entered(step.target) if target in self.number]
                    found |= {(self.number[target], self.number[slot], False) for target in targets}
        for state, steps in enumerate(self.automaton.moves[0]):
            source = Slot(state, self._fresh(state))
            for step in steps:
                target = Slot(step.target, self._fresh(step.target))
                if step.may_tie and step.position in positions and source in self.number and target in self.number:
                    found.add((self.number[target], self.number[source], True))
        return found

    def moving(self, positions: Positions) -> set[tuple[int, int]]:
        """Where events of one time that fit these positions leave what is there: (to slot, from slot)."""
        found = set()
        for slot in self.slots:
            if self._taken(slot, positions) or self._replaced(slot, positions):
                continue
            after = Slot(slot.state, self._seen(slot.tag, positions), slot.ended)
            if after in self.number:
                found.add((self.number[after], self.number[slot]))
        return found

    def _taken(self, slot: Slot, positions: Positions) -> bool:
        """Whether runs that wait here go on, or end."""
        if slot.state is None or slot.ended or self.keeps:
            return False
        return self.spec.adjacent or any(step.position in positions for step in self._steps(slot))

    def _replaced(self, slot: Slot, positions: Positions) -> bool:
        """Whether an event takes the place of the hidden one with which partial matches end here."""
        return slot.state in self.existence.hidden and self.template.position_of[slot.state] in positions

    # --------------------------------------------------------------------------------------- matrices

    @cached_property
    def begin(self) -> int:
        """The slot of the empty match."""
        return self.number[Slot(None, self._fresh(None))]

    @cached_property
    def accepts(self) -> tuple[int, ...]:
        return tuple(at for at, slot in enumerate(self.slots) if self.accepting(slot))

    @cached_property
    def position_of(self) -> tuple[int, ...]:
        """The position that entering a slot binds; −1 for the empty match."""
        return tuple(-1 if slot.state is None else self.template.position_of[slot.state] for slot in self.slots)

    @cached_property
    def sources(self) -> tuple[int, ...]:
        """Slots that more than keep what they hold: the columns of a matrix. The others only ever grow."""
        hidden = self.existence.hidden
        return tuple(
            at
            for at, slot in enumerate(self.slots)
            if self._steps(slot) or slot.tag or slot.state in hidden or not (slot.ended or self.keeps)
        )

    @cached_property
    def order(self) -> tuple[int, ...]:
        """Slots such that within one time what is entered first comes first."""
        after: dict[int, set[int]] = {at: set() for at in range(len(self.slots))}
        everything = frozenset(range(len(self.spec.places)))
        for target, source, tied in self.entering(everything):
            if tied:
                after[source].add(target)
        found: list[int] = []
        seen: set[int] = set()

        def visit(at: int) -> None:
            if at not in seen:
                seen.add(at)
                for target in sorted(after[at]):
                    visit(target)
                found.append(at)

        for at in range(len(self.slots)):
            visit(at)
        return tuple(reversed(found))

"""How queries are answered together is the way that should take the least time, by what is known of the events."""

from __future__ import annotations

from dataclasses import replace
from itertools import product

import pyarrow as pa
import pytest

from trendloom.kernels.shared import CountedQuery, CountedStep
from trendloom.kernels.shared.program import merge_queries
from trendloom.logical.plan import Plan
from trendloom.logical.statistics import KeySpread, Statistics
from trendloom.model.time import Window
from trendloom.options import Options
from trendloom.planner.sharing.groups import (
    ALONE,
    BACKWARDS,
    FORWARDS,
    LONG_COUNTS,
    PER_START,
    SharedGroup,
    SharingQuestion,
)
from trendloom.planner.sharing.queries import Rates, rates_of, seconds_alone, seconds_of_sweep, step_cost
from trendloom.runtime.planning import planned
from trendloom.runtime.reading import queries_of, schema_of_columns

SPAN = 1000
COLUMNS = pa.schema([("time", pa.int64()), ("type", pa.string()), ("key", pa.int64()), ("x", pa.int64())])
Events = dict[str, float]


def groups(queries: list[str], events: Events | None = None, keys: float = 1) -> tuple[SharedGroup, ...]:
    """Which queries are answered together, if so many events of each type lie between times 0 and 999."""
    text = "\n".join(f"QUERY q{number}: {query}" for number, query in enumerate(queries))
    known = Statistics() if events is None else Statistics(
        types=events, first=0, last=SPAN - 1, keys={("key",): KeySpread(keys)}
    )  # fmt: skip

    def statistics(plan: Plan) -> Statistics:
        return known

    return planned(queries_of(text), schema_of_columns(COLUMNS, Options()), statistics=statistics).shared_groups


def counts(words: list[str], window: str = "WITHIN 100") -> list[str]:
    """A query for each word that counts its letters in sequence."""
    return [f"RETURN COUNT(*) AS n PATTERN SEQ({', '.join(word)}) WHERE [key] {window}" for word in words]


def often(letters: str, count: float = 10_000.0) -> Events:
    return dict.fromkeys(letters, count)


def seconds(group: SharedGroup) -> dict[str, float | None]:
    return {way.name: way.seconds for way in group.ways}


def taken(group: SharedGroup) -> str:
    return group.considered.way.name


class TestTheWayThatIsTaken:
    def test_common_prefixes_are_swept_forwards(self) -> None:
        (group,) = groups(counts(["ABCD", "ABCE", "ABCF"]), often("ABCDEF"))
        assert taken(group) == FORWARDS
        assert group.saved == "6 prefixes for 12 positions"

    def test_common_suffixes_are_swept_from_the_end(self) -> None:
        (group,) = groups(counts(["DABC", "EABC", "FABC"]), often("ABCDEF"))
        assert taken(group) == BACKWARDS
        assert group.kernel.backwards
        assert group.saved == "6 suffixes for 12 positions"

    def test_it_is_the_one_with_the_least_estimate(self) -> None:
        for words in (["ABCD", "ABCE", "ABCF"], ["DABC", "EABC", "FABC"], ["AB", "CD"]):
            (group,) = groups(counts(words), often("ABCDEF"))
            assert min(seconds(group).values(), key=lambda one: one or 0.0) == seconds(group)[taken(group)]

    def test_one_query_is_not_a_group(self) -> None:
        assert groups(counts(["ABC"]), often("ABC")) == ()


MIDDLE = [f"{first}UVWX{last}" for first, last in zip("ABCDEFGH", "IJKLMNOP", strict=True)]
"""Four positions in the middle that all have in common, and nothing else."""
SELDOM = often("ABCDEFGHIJKLMNOPU", 100.0) | often("VWX", 100_000.0)
"""U begins the middle."""


class TestSegmentsInTheMiddle:
    def test_few_start_events_of_a_key_are_counted_one_by_one(self) -> None:
        (group,) = groups(counts(MIDDLE, "WITHIN 100 SLIDE 5"), SELDOM, keys=10)
        assert taken(group) == PER_START
        assert group.saved == "16 prefixes for 48 positions, 1 segments per START event"
        (segment,) = group.kernel.segments
        assert len(segment.steps) == 4
        assert segment.places == tuple((query, 1) for query in range(8))

    def test_many_are_not(self) -> None:
        (group,) = groups(counts(MIDDLE), SELDOM | often("U", 100_000.0))
        assert PER_START not in seconds(group)
        assert taken(group) in (FORWARDS, BACKWARDS)

    def test_nor_are_sums_or_what_must_not_lie_between(self) -> None:
        summed = [query.replace("COUNT(*)", "SUM(u.x)").replace("U,", "U u,") for query in counts(MIDDLE)]
        gaps = [query.replace("V, W", "V, NOT Z, W") for query in counts(MIDDLE)]
        for queries in (summed, gaps):
            (group,) = groups(queries, SELDOM | often("Z"), keys=10)
            assert PER_START not in seconds(group)
            assert group.kernel.segments == ()


class TestRepeatedSteps:
    def test_numbers_that_do_not_fit_are_counted_by_every_query_itself(self) -> None:
        """A + doubles what is counted with every event, and a sweep has 62 bits."""
        repeated = [query.replace("A,", "A+,") for query in counts(["AB", "AC"])]
        few, many = (LONG_COUNTS - 1) * SPAN / 100, (LONG_COUNTS + 1) * SPAN / 100
        (group,) = groups(repeated, {"A": few, "B": 10.0, "C": 10.0})
        assert group.members == (0, 1)
        assert groups(repeated, {"A": many, "B": 10.0, "C": 10.0}) == ()

    def test_those_without_it_are_still_answered_together(self) -> None:
        repeated = "RETURN COUNT(*) AS n PATTERN SEQ(A+, B) WHERE [key] WITHIN 100"
        (group,) = groups([repeated, *counts(["AB", "AC"])], often("ABC"))
        assert group.members == (1, 2)


class TestWhereNothingIsKnown:
    def test_ways_have_no_estimates(self) -> None:
        (group,) = groups(counts(["ABC", "ABD"]))
        assert set(seconds(group)) == {ALONE, FORWARDS, BACKWARDS}
        assert set(seconds(group).values()) == {None}
        assert taken(group) == FORWARDS

    def test_prefixes_or_suffixes_decide_by_their_number(self) -> None:
        (group,) = groups(counts(["DABC", "EABC", "FABC"]))
        assert taken(group) == BACKWARDS

    def test_a_repeated_step_is_tried(self) -> None:
        """If its numbers do not fit, the query is answered again by itself."""
        (group,) = groups(["RETURN COUNT(*) PATTERN SEQ(A+, B)", "RETURN COUNT(*) PATTERN SEQ(A+, C)"])
        assert group.members == (0, 1)


class TestRates:
    ASKED = (("A", ()), ("B", ("a condition",)), ("C", ()))

    def test_events_by_type_keys_and_span(self) -> None:
        known = Statistics(types={"A": 100.0, "B": 50.0}, first=1, last=10, keys={("key",): KeySpread(4.0)})
        rates = rates_of(self.ASKED, ("key",), known)
        assert rates == Rates((100.0, 15.0, 0.0), 4.0, 10.0, known=True)

    def test_without_figures_all_types_are_alike(self) -> None:
        rates = rates_of(self.ASKED, ("key",), Statistics())
        assert not rates.known
        assert rates.events[0] == rates.events[2] > rates.events[1]
        assert (rates.keys, rates.span) == (1.0, None)


def word(letters: str, window: Window) -> CountedQuery:
    return CountedQuery(window, tuple(CountedStep("ABCDE".index(letter)) for letter in letters))


TUMBLING, SLIDING = Window(100, 100), Window(100, 10)
HUNDREDS = Rates((100.0,) * 5, keys=2.0, span=1000.0, known=True)


class TestSeconds:
    def test_a_sweep_takes_longer_with_more_events(self) -> None:
        merged = merge_queries([word("ABC", TUMBLING), word("ABD", TUMBLING)])
        found = [seconds_of_sweep(merged, replace(HUNDREDS, events=(count,) * 5)) for count in (10.0, 100.0, 1000.0)]
        assert found == sorted(found)
        assert len(set(found)) == 3

    def test_with_more_open_windows(self) -> None:
        """The same grid of windows, so that as many begin: only lanes differ."""
        short, long = (merge_queries([word("ABC", Window(within, 10))]) for within in (10, 100))
        endless = replace(HUNDREDS, span=None)
        assert seconds_of_sweep(short, endless) < seconds_of_sweep(long, endless)

    def test_with_more_nodes(self) -> None:
        """Of the same letters, so that no more events are looked at."""
        common = merge_queries([word("ABCD", TUMBLING), word("ABCE", TUMBLING)])
        apart = merge_queries([word("ABCD", TUMBLING), word("BACE", TUMBLING)])
        assert (common.nodes, apart.nodes) == (5, 8)
        assert seconds_of_sweep(common, HUNDREDS) < seconds_of_sweep(apart, HUNDREDS)

    def test_with_more_keys_and_windows(self) -> None:
        merged = merge_queries([word("ABC", SLIDING)])
        assert seconds_of_sweep(merged, HUNDREDS) < seconds_of_sweep(merged, replace(HUNDREDS, keys=3.0))
        few = replace(
            HUNDREDS, events=(100.0, 1.0, *(100.0,) * 3)
        )  # no match in most windows, so that they alone count
        assert seconds_of_sweep(merged, few) < seconds_of_sweep(merged, replace(few, span=2000.0))

    def test_windows_without_events_cost_nothing(self) -> None:
        merged = merge_queries([word("ABC", TUMBLING)])
        many = replace(HUNDREDS, keys=1e6)
        assert seconds_of_sweep(merged, many) == seconds_of_sweep(merged, replace(many, keys=1e9))

    def test_by_itself_every_query_counts(self) -> None:
        one, two = [word("ABC", TUMBLING)], [word("ABC", TUMBLING)] * 2
        assert seconds_alone(two, HUNDREDS) == pytest.approx(2 * seconds_alone(one, HUNDREDS))
        assert seconds_alone(one, HUNDREDS) < seconds_alone([word("ABCD", TUMBLING)], HUNDREDS)


class TestWhatASegmentSaves:
    def question(self, *queries: CountedQuery, rates: Rates = HUNDREDS) -> SharingQuestion:
        return SharingQuestion(tuple("pqr"[: len(queries)]), queries, tuple("ABCDE"), rates)

    def test_a_prefix_saves_the_nodes_that_are_not_there_twice(self) -> None:
        question = self.question(word("ABC", TUMBLING), word("ABD", TUMBLING))
        (prefix,) = question.choice().segments
        of_letter = step_cost(0, question.families[0], HUNDREDS)
        assert question.saved(prefix) * 1000 == pytest.approx(2 * of_letter)

    def test_queries_with_windows_of_other_families_save_nothing(self) -> None:
        question = self.question(word("ABC", TUMBLING), word("ABD", Window(77, 77)))
        assert question.choice().segments == ()

    def test_a_middle_saves_where_few_events_begin_it(self) -> None:
        sliding = Window(100, 4)
        queries = [word(f"{first}BCD", sliding) for first in ("A", "E", "AE", "EA", "AA", "EE", "AEA", "EAE")]
        seldom = replace(HUNDREDS, events=(100.0, 2.0, 1e5, 1e5, 100.0))
        (segment,) = self.question(*queries, rates=seldom).search.segments
        assert [step.letter for step in segment.steps] == [1, 2, 3]
        assert (
            self.question(*queries, rates=replace(seldom, events=(100.0, 1e5, 1e5, 1e5, 100.0))).search.segments == ()
        )


# --------------------------------------------------- a limited search for segments, and one without a limit


def question(words: list[str]) -> SharingQuestion:
    """Queries in long windows with few START events, where counting per START event pays."""
    steps = [tuple(CountedStep(ord(letter) - ord("a")) for letter in word) for word in words]
    queries = tuple(CountedQuery(Window(1600, 50), some, (("m", 1),)) for some in steps)
    rates = Rates((10_000.0,) * 26, keys=5_000.0, span=20_000.0, known=True)
    return SharingQuestion(tuple(words), queries, tuple((letter, ()) for letter in range(26)), rates)


WORDS = [
    *(f"{letter}abcde{letter}" for letter in "klmnop"),
    *(f"{first}{second}abcde" for first, second in product("hij", "qrs")),
    *(f"{letter}cdefg{letter}" for letter in "qrstuv"),
    *(f"{first}{second}cdefg" for first, second in product("hij", "tuv")),
    *(f"{letter}abcdefg{letter}" for letter in "wxyz"),
]


def test_a_limited_search_is_open_and_one_without_a_limit_is_not() -> None:
    limited = replace(question(WORDS), limit=0)
    assert not limited.search.best
    found = limited.without_limit.search
    assert found.best
    assert {one.steps for one in found.segments} == {one.steps for one in question(WORDS).choice().segments}
    assert found.segments


def test_questions_that_are_alike_have_one_answer() -> None:
    assert question(WORDS).search is question(WORDS).search


def test_prefixes_need_no_search() -> None:
    found = replace(question(["abc", "abd"]), limit=0).search
    assert (found.segments, found.best) == ((), True)

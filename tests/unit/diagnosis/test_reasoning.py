"""From features and periods to a reason, on small streams with a known cause."""

from __future__ import annotations

import dataclasses
import json

import numpy as np
import pyarrow as pa
import pytest
from tests.unit.diagnosis.feature_tables import feature_table

from trendloom.diagnosis.diagnosis import CandidateFeature, Diagnosis
from trendloom.diagnosis.features import FeatureTable
from trendloom.diagnosis.formula import Formula
from trendloom.diagnosis.periods import Period, labelled
from trendloom.diagnosis.reasoning import diagnose
from trendloom.diagnosis.request import Settings
from trendloom.errors import DataError, OptionError

SICK = Period(1_200, 1_800, True)
MARKED = (SICK, Period(0, 1_200, False), Period(1_800, 3_600, False))


def events(seed: int = 1, end: int = 3_600, sick: tuple[int, int] = (1_200, 1_800)) -> dict[str, pa.Table]:
    """Memory is scarce and a sensor is silent for ten minutes of an hour; the rest is noise."""
    chance = np.random.default_rng(seed)
    times = np.sort(chance.integers(0, end, end // 3))
    bad = (times >= sick[0]) & (times < sick[1])
    memory = {
        "time": times,
        "free": np.where(bad, 1.5e9, 3e9) + chance.normal(0, 1e8, len(times)),
        "swap": np.where(bad, 3e8, 6e8) + chance.normal(0, 6e7, len(times)),
        "noise": chance.normal(size=len(times)),
        "fixed": np.ones(len(times)),
    }
    heard = times[~bad]
    return {"Memory": pa.table(memory), "Sensor": pa.table({"time": heard, "value": chance.normal(size=len(heard))})}


def table(found: dict[str, pa.Table], window: int = 30, end: int = 3_600) -> FeatureTable:
    return feature_table(found, "time", 0, end, window, length=f"{window} s")


def names(found: Diagnosis) -> list[str]:
    return [one.feature.name for one in found.kept]


def candidate(found: Diagnosis, name: str) -> CandidateFeature:
    return next(one for one in found.candidates if one.feature.name == name)


def test_the_reason_of_an_anomaly() -> None:
    found = diagnose([table(events())], MARKED, settings=Settings(correlation=0.995))
    assert "Memory.free mean over 30 s" in names(found)
    assert "Sensor count over 30 s" in names(found), "data that stops is a feature"
    assert found.boundary(candidate(found, "Memory.free mean over 30 s").feature) == "<= 2.6e9"
    assert "free memory (Memory.free mean over 30 s) stayed below 2.6e9 (1.4" in found.sentence
    assert (
        "number of Sensor events (Sensor count over 30 s) stayed at 2 or less (0, reference: 3 to 17)" in found.sentence
    )
    assert str(found) == found.sentence


def test_every_candidate_says_what_became_of_it() -> None:
    found = diagnose([table(events())], MARKED)
    assert names(found) == ["Memory.free mean over 30 s"], "all that separates moves together"
    assert candidate(found, "Memory.free mean over 30 s") == found.kept[0]
    assert (found.kept[0].reward, found.kept[0].cluster, found.kept[0].why) == (1, 1, "")
    assert candidate(found, "Memory.swap mean over 30 s").why.startswith("correlates with Memory.free mean over 30 s (")
    assert candidate(found, "Memory.noise mean over 30 s").why == "below the leap at 1.00"
    assert candidate(found, "Sensor.value mean over 30 s").why == "no values in the abnormal windows"
    assert candidate(found, "Memory.fixed mean over 30 s").why == "the same values in both"
    assert all(bool(one.why) != one.kept for one in found.candidates)
    rewards = [one.reward for one in found.candidates]
    assert rewards == sorted(rewards, reverse=True)


def test_the_formula_finds_the_anomaly_elsewhere() -> None:
    formula = diagnose([table(events())], MARKED).formula
    other = table(events(seed=2, sick=(600, 900)))
    np.testing.assert_array_equal(formula.evaluate(other), other.within(600, 900))


def test_windows_of_several_lengths() -> None:
    found = diagnose([table(events(), 60), table(events(), 30)], MARKED)
    assert names(found) == ["Memory.free mean over 30 s"]
    assert candidate(found, "Memory.free mean over 60 s").why.startswith("correlates with Memory.free mean over 30 s")
    assert [one.window for one in found.windows] == [30]
    both = diagnose([table(events(), 60), table(events(), 30)], MARKED, settings=Settings(correlation=1.01))
    assert {one.window for one in both.windows} == {30, 60}
    assert both.formula.evaluate(table(events(), 60), table(events(), 30)).sum() == 20


def test_the_answer_as_json() -> None:
    found = diagnose([table(events())], MARKED)
    read = json.loads(json.dumps(found.to_json()))
    assert read["sentence"] == found.sentence
    assert Formula.from_json(read["formula"]) == found.formula
    assert read["candidates"][0]["boundary"] == "<= 2.6e9"
    assert read["periods"][0] == {"low": 1200, "high": 1800, "abnormal": True, "partition": {}, "annotated": True}
    assert len(read["candidates"]) == len(found.candidates)


def test_progress_is_told() -> None:
    heard: list[tuple[str, float]] = []
    diagnose([table(events())], MARKED, progress=lambda what, share: heard.append((what, share)))
    assert [what for what, _ in heard] == ["rewards", "related partitions", "correlations", "boundaries", "done"]
    assert [share for _, share in heard] == sorted(share for _, share in heard)


# ------------------------------------------------------------------------------------------- false positives


def with_uptime(found: dict[str, pa.Table]) -> dict[str, pa.Table]:
    uptime = found["Memory"].column("time").to_numpy().astype(float)
    return found | {"Memory": found["Memory"].append_column("uptime", pa.array(uptime))}


def test_false_positives_do_not_hold_in_related_partitions() -> None:
    """Uptime tells the first third of a run from the rest, in every run."""
    stream = table(with_uptime(events(end=18_000, sick=(7_200, 8_400))), end=18_000)
    marked = (Period(7_200, 8_400, True), Period(8_400, 10_800, False))
    related = [
        Period(low, low + length, False, annotated=False)
        for run in (0, 3_600, 10_800, 14_400)
        for low, length in ((run, 1_200), (run + 1_200, 2_400))
    ]
    alone = diagnose([stream], marked, settings=Settings(correlation=0.99))
    assert "Memory.uptime mean over 30 s" in names(alone)
    assert alone.notes[-1] == "there are no related partitions, so false positives were not looked for"
    assert alone.related is None
    found = diagnose([stream], marked, related, Settings(correlation=0.99))
    assert "Memory.free mean over 30 s" in names(found)
    uptime = candidate(found, "Memory.uptime mean over 30 s")
    assert (uptime.reward, uptime.kept) == (1, False)
    assert uptime.why == f"false positive: {uptime.validated:.2f} over related partitions"
    assert (found.related, found.notes) == (8, ())
    assert len(found.periods) == 10


def test_who_holds_somewhat_is_out_where_others_hold_perfectly() -> None:
    """In a related run swap was low for half a minute without an anomaly; free memory never was."""
    found = events(end=7_200)
    memory = found["Memory"].to_pandas()
    memory.loc[(memory.time >= 4_800) & (memory.time < 4_830), "swap"] = 3e8
    found["Memory"] = pa.table(memory)
    related = [Period(3_600, 7_200, False, annotated=False)]
    chosen = Settings(correlation=0.995)
    swap = candidate(diagnose([table(found, end=7_200)], MARKED, related, chosen), "Memory.swap mean over 30 s")
    assert swap.validated is not None
    assert 0.5 < swap.validated < 0.9
    assert swap.why == f"less sure: {swap.validated:.2f} over related partitions, where others have 1.00"
    lenient = dataclasses.replace(chosen, validated_best=0.5)
    assert "Memory.swap mean over 30 s" in names(diagnose([table(found, end=7_200)], MARKED, related, lenient))


def test_related_periods_that_nobody_could_label() -> None:
    found = diagnose([table(events())], MARKED, [])
    assert found.notes[-1].startswith("no period of a related partition could be labelled")
    assert found.related == 0


def test_what_a_person_marked_stands_before_likeness() -> None:
    alike = [Period(1_200, 1_500, False, annotated=False), Period(0, 300, True, annotated=False)]
    windows = labelled(table(events()), [*MARKED, *alike])
    assert windows.abnormal.sum() == 20
    assert windows.places.tolist() == labelled(table(events()), MARKED).places.tolist()
    contradicting = [Period(0, 600, True, annotated=False), Period(300, 900, False, annotated=False)]
    windows = labelled(table(events()), [SICK, *contradicting])
    starts = table(events()).starts[windows.places]
    assert not ((starts >= 300) & (starts < 600)).any(), "both abnormal and not: left out"
    assert windows.abnormal[starts < 300].all()


# -------------------------------------------------------------------------------------------------- robustness


def test_nothing_separates() -> None:
    still = events(sick=(0, 0))
    found = diagnose([table(still)], MARKED)
    assert found.formula == Formula(())
    assert found.sentence.startswith("No feature tells the abnormal windows from the reference; the best is ")
    assert found.windows == ()
    assert not found.formula.evaluate(table(still)).any()


def test_few_windows_and_many_features_separate_by_chance() -> None:
    chance = np.random.default_rng(4)
    columns = {f"x{number}": chance.normal(size=100) for number in range(200)}
    few = feature_table({"T": pa.table({"time": np.arange(100), **columns})}, "time", 0, 100, 10, length="10 s")
    found = diagnose([few], [Period(0, 50, True), Period(50, 100, False)])
    assert "5 abnormal and 5 reference windows of 10 s are few for 1,001 features: about 7.9 of them" in found.notes[0]


def test_a_feature_with_few_values_is_no_reason() -> None:
    """A rare value in one abnormal window separates it from everything, and says nothing of the others."""
    rare = pa.table({"time": [1_210, 40, 2_000], "x": [9.0, 1.0, 2.0]})
    found = diagnose([table({**events(), "Rare": rare})], MARKED)
    one = candidate(found, "Rare.x mean over 30 s")
    assert (one.reward, one.why) == (1, "values in 1 of 20 abnormal windows only")


def test_noise_within_the_abnormal_windows_is_told() -> None:
    found = events()
    memory = found["Memory"].to_pandas()
    memory.loc[(memory.time >= 1_200) & (memory.time < 1_230), "free"] = 3e9
    memory.loc[(memory.time >= 1_200) & (memory.time < 1_230), "swap"] = 6e8
    sick = diagnose([table({"Memory": pa.Table.from_pandas(memory)})], MARKED)
    assert "was mostly (95 % of the windows) below" in sick.sentence


@pytest.mark.parametrize(
    ("periods", "message"),
    [
        ([Period(0, 90, False)], "there is no abnormal interval"),
        ([Period(0, 90, True)], "there is no reference interval"),
        ([Period(0, 90, True), Period(90, 90, False)], r"the reference interval \[90, 90\) is empty"),
        ([Period(0, 90, True), Period(60, 120, False)], r"abnormal interval \[0, 90\) and the reference .* overlap"),
        (
            [Period(0, 900, True), Period(100, 200, True), Period(600, 700, False)],
            r"abnormal interval \[0, 900\) and the reference interval \[600, 700\) overlap",
        ),
        (
            [Period(1, 30, True), Period(60, 120, False)],
            r"the abnormal interval \[1, 30\) holds no whole window of 30 s",
        ),
    ],
)
def test_intervals_that_cannot_be(periods: list[Period], message: str) -> None:
    with pytest.raises(OptionError, match=message):
        diagnose([table(events())], periods)


def test_no_events_at_all() -> None:
    with pytest.raises(DataError, match="there are no features"):
        diagnose([feature_table({}, "time", 0, 3_600, 30)], MARKED)

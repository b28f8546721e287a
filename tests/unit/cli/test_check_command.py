from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Command = Callable[..., Result]

LANGUAGE_EXAMPLES = {
    "check_kites": """
        RETURN COMPLETE TRENDS  PATTERN Check C+
        WHERE C.status = 'uncovered' AND C.destination = NEXT(C).source
        WITHIN 1 day SLIDE 10 minutes""",
    "heart_rate": """
        RETURN patient, MIN(M.rate), MAX(M.rate)  PATTERN Measurement M+  SEMANTICS contiguous
        WHERE [patient] AND M.rate < NEXT(M).rate AND M.activity = 'passive'
        GROUP BY patient  WITHIN 10 minutes SLIDE 30 seconds""",
    "trips": """
        RETURN COUNT(*)  PATTERN SEQ(OakSt, MainSt, StateSt)  WHERE [vehicle]
        WITHIN 10 min SLIDE 1 min  HAVING COUNT(*) > 100""",
    "load_imbalance": """
        PATTERN SEQ(ReducerStart a, LoadStd+ b[], ReducerEnd c)
        WHERE [task_id] AND b[i].val >= b[i-1].val  WITHIN 10 minutes  RETURN a.task_id, count(b[])""",
    "shoplifting": """
        PATTERN SEQ(Shelf a, !(CheckOut b), Exit c)  WHERE [tag_id]  WITHIN 12 hours  RETURN c.location, c.tag_id""",
    "unsafe_tool": """
        PATTERN SEQ(Recycle r, (Washing w: w.id = r.id),
                    !SEQ((Sharpening s: s.id = o.id), (Disinfection d: d.id = s.id), (Checking c: c.id = s.id)),
                    (Operating o: o.id = w.id AND o.ins_type = 'surgery'))
        WITHIN 1 hour""",
    "big_spenders": """
        PATTERN SEQ(BrandA a, BrandB b, BrandC c)  WHERE [ccid]  WITHIN 10 hours SLIDE 5 hours
        RANK BY a.exp + b.exp + c.exp DESC LIMIT 10""",
}


@pytest.mark.parametrize("name", LANGUAGE_EXAMPLES)
def test_the_examples_of_the_language_are_fine(trendloom: Command, name: str) -> None:
    result = trendloom("check", "-", text=LANGUAGE_EXAMPLES[name])
    assert (result.exit_code, result.stderr) == (0, "")
    assert result.stdout.startswith("ok: 1 query")


def test_the_examples_of_the_language_are_a_workload(trendloom: Command) -> None:
    text = "\n".join(f"QUERY {name}: {query}" for name, query in LANGUAGE_EXAMPLES.items())
    assert trendloom("check", "-", text=text).stdout.startswith("ok: 7 queries")


def test_without_events_attributes_are_taken_on_trust(trendloom: Command) -> None:
    result = trendloom("check", "-", text="PATTERN A a WHERE a.prise > 10")
    assert result.stdout == "ok: 1 query (attributes not looked up; --events FILE does that)\n"


def test_with_events_attributes_are_looked_up(trendloom: Command) -> None:
    result = trendloom("check", "-", "--events", "events.csv", text="PATTERN A a WHERE a.valu > 10")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "did you mean 'value'?" in result.stderr


def test_warnings_are_told_and_counted(trendloom: Command) -> None:
    result = trendloom("check", "-", "--events", "events.csv", text="PATTERN SEQ(A+, A+, D)")
    assert result.exit_code == 0
    assert result.stdout == "ok: 1 query, 2 warnings\n"
    assert result.stderr.count("warning: ") == 2
    assert "ambiguous pattern" in result.stderr


def test_quiet_says_nothing_of_a_good_query(trendloom: Command) -> None:
    result = trendloom("check", "-", "--quiet", text="PATTERN SEQ(A+, A+)")
    assert (result.exit_code, result.stdout, result.stderr) == (0, "", "")


def test_one_query_of_a_workload_can_be_checked(trendloom: Command, folder: Path) -> None:
    (folder / "two.tql").write_text("QUERY good: PATTERN A\nQUERY bad: PATTERN NOT A")
    assert trendloom("check", "two.tql", "--query", "good").exit_code == 0
    assert trendloom("check", "two.tql", "--query", "bad").exit_code == 2


@pytest.mark.parametrize(
    "text",
    [
        "PATTERN SEQ(A a, B b) WHERE b.time - a.time < 5 min",
        "PATTERN SEQ(A a, B b) WHERE b.time - a.time < 5 WITHIN 100",
        "PATTERN SEQ(A a, B b) WHERE b.until - a.since < 500 ms WITHIN 1 h",
        "PATTERN A a WHERE a.time > '2024-01-31 12:00:00'",
        "PATTERN A a WHERE a.name LIKE 'x%' AND length(a.name) > 2 AND coalesce(a.x, 1) > 0 AND NOT a.flag",
        "PATTERN SEQ(A a, B b) CONFIDENCE >= 0.5 WITHIN 10",
    ],
)
def test_a_query_that_fits_some_data_is_not_refused_without_data(trendloom: Command, text: str) -> None:
    result = trendloom("check", "-", text=text)
    assert (result.exit_code, result.stderr) == (0, "")

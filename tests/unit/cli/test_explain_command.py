from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from click.testing import Result

Command = Callable[..., Result]


def test_explain_shows_three_plans_and_names_the_engine(trendloom: Command) -> None:
    text = "RETURN user, COUNT(*) PATTERN SEQ(A a, B b) GROUP BY user"
    result = trendloom("explain", "-", "--events", "events.csv", text=text)
    assert (result.exit_code, result.stderr) == (0, "")
    lines = result.stdout.splitlines()
    assert [line for line in lines if line.endswith(" plan")] == ["Logical plan", "Optimized plan", "Physical plan"]
    assert "repartition events by user" in result.stdout
    local = trendloom("explain", "-", "--events", "events.csv", "--engine", "local", text=text).stdout
    assert "repartition" not in local
    assert "one columnar call for all partitions" in local


def test_explain_without_events_says_what_it_assumes(trendloom: Command) -> None:
    result = trendloom("explain", "-", text="PATTERN A a WHERE a.price > 10")
    assert result.stdout.startswith("-- no events given")


def test_explain_of_a_feature_without_algorithm_is_no_error(trendloom: Command) -> None:
    bounds = ("--time-low", "time", "--time-high", "time")
    nots = ", ".join(f"NOT B n{number}, A a{number}" for number in range(9))
    query = f"PATTERN SEQ(A a, {nots}) SEMANTICS skip-till-next-match"
    result = trendloom("explain", "-", "--events", "events.csv", *bounds, text=query)
    assert result.exit_code == 0
    assert "refused" in result.stdout
    assert "hint" in result.stdout


def test_explain_of_a_bad_query_is_an_error(trendloom: Command) -> None:
    result = trendloom("explain", "-", "--events", "events.csv", text="PATTERN A a WHERE a.price > 10")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "A has no attribute 'price'" in result.stderr


def test_explain_can_choose_one_query(trendloom: Command) -> None:
    result = trendloom("explain", "-", "--query", "q", text="QUERY p: PATTERN A\nQUERY q: PATTERN B")
    assert "QUERY q:" in result.stdout
    assert "QUERY p:" not in result.stdout


def test_the_pattern_of_a_query_is_drawn(trendloom: Command, folder: Path) -> None:
    result = trendloom("explain", "-", "--picture", "pattern.svg", text="PATTERN SEQ(A a, B+ b[])")
    assert (result.exit_code, result.stderr) == (0, "note: drawn: pattern.svg\n")
    assert "Physical plan" in result.stdout
    assert (folder / "pattern.svg").stat().st_size > 1000


def test_a_picture_that_cannot_be_drawn_is_refused(trendloom: Command) -> None:
    result = trendloom("explain", "-", "--picture", "pattern.pdf", text="PATTERN A")
    assert (result.exit_code, result.stdout) == (2, "")
    assert "a picture's name ends in .svg or .png" in result.stderr
    result = trendloom("explain", "-", "--picture", "all.svg", text="QUERY p: PATTERN A\nQUERY q: PATTERN B")
    assert result.exit_code == 2
    assert "there is nothing to draw" in result.stderr
    assert "--query" in result.stderr

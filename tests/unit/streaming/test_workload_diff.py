"""A text of queries that changes under a workload that runs: what is taken, what is refused, what goes on."""

from __future__ import annotations

from trendloom.errors import OptionError
from trendloom.frontend.tql.parser import parse
from trendloom.streaming.workload_diff import Queries, WorkloadDiff, take_queries

A = "QUERY a: PATTERN SEQ(A, B) WITHIN 5\n"
B = "QUERY b: PATTERN SEQ(B, C) WITHIN 5\n"
NEW = "QUERY n: PATTERN SEQ(A, C) WITHIN 5\n"
OTHER_A = "QUERY a: PATTERN SEQ(A, C) WITHIN 9\n"
BAD, RIVAL = "bad", "rival"
"""Names that the check of these tests refuses: one always, one beside `n`."""


def check(queries: Queries) -> None:
    names = [query.name for query in queries]
    if BAD in names:
        raise OptionError("it does not bind")
    if RIVAL in names and "n" in names:
        raise OptionError("they do not share a table")
    if any(query.name == "a" and query.within != parse(A)[0].within for query in queries):
        raise OptionError("query 'a' has changed")


def taken(text: str, running: str = A + B) -> tuple[list[str | None], list[str]]:
    found = take_queries(text, parse(running), check)
    return [query.name for query in found.queries], [error.message for error in found.refused]


def test_queries_are_added_and_removed() -> None:
    assert taken(A + NEW) == (["a", "n"], [])
    found = take_queries(A + NEW, parse(A + B), check)
    assert [query.name for query in found.added_to(parse(A + B))] == ["n"]
    assert [query.name for query in found.removed_from(parse(A + B))] == ["b"]


def test_only_blanks_comments_and_order_have_changed() -> None:
    found = take_queries("-- as ever\n" + B + "\n" + A.replace(" WITHIN", "\nWITHIN"), parse(A + B), check)
    assert not found.changes(parse(A + B))
    assert found.refused == ()


def test_what_does_not_bind_is_refused_and_the_rest_is_taken() -> None:
    assert taken(A + NEW.replace(" n:", " bad:") + NEW) == (["a", "n"], ["it does not bind"])


def test_a_query_that_changed_under_its_name_goes_on_as_it_was() -> None:
    found = take_queries(OTHER_A + NEW, parse(A + B), check)
    assert found.queries[0] == parse(A)[0]
    assert [error.message for error in found.refused] == ["query 'a' has changed"]
    assert taken(OTHER_A + NEW)[0] == ["a", "n"]


def test_of_two_queries_that_do_not_go_together_the_first_is_taken() -> None:
    assert taken(A + NEW + NEW.replace(" n:", " rival:")) == (["a", "n"], ["they do not share a table"])


def test_while_a_part_does_not_parse_nothing_is_removed() -> None:
    names, refused = taken(A + NEW + "QUERY half: PATTERN SEQ(")
    assert names == ["a", "b", "n"]
    assert len(refused) == 1


def test_a_text_that_is_no_workload_changes_nothing() -> None:
    for text in ("", "garbage", "PATTERN"):
        names, refused = taken(text)
        assert names == ["a", "b"]
        assert len(refused) == 1


def test_a_workload_does_not_become_empty() -> None:
    names, refused = taken(NEW.replace(" n:", " bad:"))
    assert names == ["a", "b"]
    assert refused == ["it does not bind", "no query of the text can run"]


def test_a_workload_that_is_the_same_has_no_changes() -> None:
    assert not WorkloadDiff(parse(A + B)).changes(parse(B + A))

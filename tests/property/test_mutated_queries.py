"""Thousands of queries that are nearly right: read, bound and planned, or refused by our errors with a message."""

from __future__ import annotations

import pytest
from tests.property.amounts import rounds
from tests.property.mutants import good_queries, survey

SOME = rounds(200)


@pytest.mark.parametrize("seed", range(3))
def test_mutants_are_planned_or_refused(seed: int) -> None:
    broken: list[tuple[str, str]] = []
    stages = survey(SOME, seed, lambda text, error: broken.append((text, repr(error))))
    assert broken == []
    assert stages["planned"] > SOME / 20  # else the mutants would test nothing but the parser
    assert stages["BindError"] > SOME / 20
    assert stages["ParseError"] > SOME / 20


def test_there_are_many_good_queries() -> None:
    assert len(good_queries()) > 150

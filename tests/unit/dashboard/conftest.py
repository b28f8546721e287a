"""What tests of the page share: a small archive, and jobs that are ended when the tests are."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.dashboard.small_archive import make_archive

from trendloom.dashboard.app_state import AppState, Archives, archives_at
from trendloom.dashboard.jobs import Allowance, PageJobs


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_archive(tmp_path_factory.mktemp("page") / "plant")


@pytest.fixture(scope="session")
def archives(folder: Path) -> Archives:
    return archives_at([folder])


@pytest.fixture(scope="session")
def jobs() -> Iterator[PageJobs]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("TRENDLOOM_COMPILE", "never")
        found = PageJobs(Allowance(seconds=60, rows=40))
        found.warm()
        yield found
        found.close()


@pytest.fixture(scope="session")
def app_state(archives: Archives, jobs: PageJobs) -> AppState:
    return AppState(archives, jobs)

"""Jobs end: when they are done, when they are stopped, when time or memory is over, when the page closes."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from trendloom.dashboard.jobs import Allowance, PageJobs, allowance_of
from trendloom.errors import DataError, OptionError, RunError

SECOND_AND_MORE = 1.5


def answer_at_once(report: Any, folder: Path, number: int) -> int:
    (folder / "left").write_text("behind")
    return number + 1


def refuse(report: Any, folder: Path) -> None:
    raise OptionError("this cannot be", hint="do that")


def fail(report: Any, folder: Path) -> None:
    raise ZeroDivisionError("by nothing")


def run_for_ever(report: Any, folder: Path) -> None:
    report(f"process {os.getpid()}")
    while True:
        pass


def start_a_child_for_ever(report: Any, folder: Path) -> None:
    child = os.fork()
    if child:
        report(f"process {child}")
    while True:
        time.sleep(1)


def take_much_memory(report: Any, folder: Path) -> float:
    return float(np.ones(3 << 27).sum())  # three gigabytes


def die(report: Any, folder: Path) -> None:
    os._exit(3)


@pytest.fixture
def few() -> Iterator[PageJobs]:
    found = PageJobs(Allowance(seconds=60, bytes=1 << 30), most=2, kept=3)
    yield found
    found.close()


def heard(jobs: PageJobs, name: str, word: str) -> str:
    while not (found := jobs.look(name)).said.startswith(word):
        assert found.state == "running", found
        time.sleep(0.01)
    return found.said


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
        return Path(f"/proc/{process}/stat").read_text().split()[2] != "Z"
    except (ProcessLookupError, FileNotFoundError):
        return False


def wait_for_end(process: int) -> None:
    deadline = time.monotonic() + 10
    while is_alive(process):
        assert time.monotonic() < deadline, "it still runs"
        time.sleep(0.02)


def test_an_answer_comes_back(jobs: PageJobs) -> None:
    found = jobs.wait(jobs.send(answer_at_once, 41))
    assert (found.state, found.answer) == ("done", 42)
    assert found.folder is not None
    assert (found.folder / "left").read_text() == "behind"


def test_what_is_refused_is_told_with_its_way_out(jobs: PageJobs) -> None:
    found = jobs.wait(jobs.send(refuse))
    assert (found.state, found.said, found.hint) == ("failed", "this cannot be", "do that")
    with pytest.raises(RunError, match="this cannot be"):
        jobs.ask(refuse, seconds=30)


def test_what_goes_wrong_is_told_without_a_traceback(jobs: PageJobs) -> None:
    assert jobs.wait(jobs.send(fail)).said == "unexpected ZeroDivisionError: by nothing"
    assert "ended without an answer" in jobs.wait(jobs.send(die)).said


def test_time_is_over_for_what_would_run_for_ever(jobs: PageJobs) -> None:
    name = jobs.send(run_for_ever, seconds=SECOND_AND_MORE)
    process = int(heard(jobs, name, "process").split()[1])
    found = jobs.wait(name)
    assert (found.state, found.said) == ("failed", "not done after 1.5 seconds, so it was stopped")
    assert found.hint
    wait_for_end(process)


def test_children_end_with_their_job(jobs: PageJobs) -> None:
    name = jobs.send(start_a_child_for_ever)
    child = int(heard(jobs, name, "process").split()[1])
    jobs.stop(name)
    assert jobs.wait(name).state == "stopped"
    wait_for_end(child)


def test_memory_has_an_end(few: PageJobs) -> None:
    assert few.wait(few.send(take_much_memory)).said == "there is not enough memory for this"


def test_others_wait_while_many_run(few: PageJobs) -> None:
    names = [few.send(run_for_ever) for _ in range(2)]
    with pytest.raises(RunError, match="running already"):
        few.send(answer_at_once, 1)
    assert few.ask(answer_at_once, 1, seconds=30) == 2, "short ones do not wait for long ones"
    few.stop(names[0])
    assert few.wait(names[0]).state == "stopped"
    assert few.wait(few.send(answer_at_once, 1)).answer == 2


def test_old_answers_and_their_files_are_forgotten(few: PageJobs) -> None:
    names = []
    for number in range(5):
        names.append(few.send(answer_at_once, number))
        few.wait(names[-1])
    with pytest.raises(DataError, match="not kept any more"):
        few.look(names[0])
    folder = few.look(names[-1]).folder
    assert folder is not None
    assert names[0] not in {path.name for path in folder.parent.iterdir()}


@pytest.mark.parametrize("name", [None, "", "../..", "unknown"])
def test_unknown_names_have_no_answer(jobs: PageJobs, name: str | None) -> None:
    with pytest.raises(DataError):
        jobs.look(name)
    jobs.stop(name)


def test_nothing_is_left_when_the_page_closes() -> None:
    jobs = PageJobs(Allowance())
    name = jobs.send(run_for_ever)
    process = int(heard(jobs, name, "process").split()[1])
    folder = jobs.look(name).folder
    jobs.close()
    wait_for_end(process)
    assert folder is not None
    assert not folder.parent.exists()


def test_limits_are_greater_than_nothing() -> None:
    assert allowance_of(5, 10, "1G") == Allowance(5, 10, 1 << 30)
    for wrong in ((0, 1, "1G"), (1, 0, "1G"), (1, 1, "0")):
        with pytest.raises(OptionError):
            allowance_of(*wrong)

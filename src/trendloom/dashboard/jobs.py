"""Work in processes of their own, with an end: a job runs until it is done, stopped, or its time is over.

A query can run for ever, or ask for all memory, and a thread cannot be stopped. So a request of a visitor that
takes time is sent to a process: it has a limit of memory and of processor time, a group of its own, which is killed
with all its children, and lower priority than the page. Processes are forked from one that has loaded the engines
already (`forkserver`), which takes some hundredths of a second. Jobs have names that cannot be guessed, so visitors
see their own only; finished ones are forgotten, and their files removed, when others need the room.
"""

from __future__ import annotations

import contextlib
import multiprocessing
import os
import resource
import secrets
import shutil
import signal
import tempfile
import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from multiprocessing import forkserver
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, Literal

from trendloom.errors import DataError, OptionError, RunError, TrendloomError
from trendloom.model.amounts import bytes_of

Report = Callable[[str], None]
"""Callback invoked with the progress of work, in words."""
Work = Callable[..., Any]
"""A function of a module: `work(report, folder, *given)`. What it returns must be picklable."""

LOADED_BEFORE = ["__main__", "trendloom.dashboard.preload"]
NARROW = "narrow the query (WITHIN, [key], predicates) or the time it runs over"
NICE = 5
PATIENCE = 5  # seconds for a process to leave after it has answered
GRACE = 2  # seconds of processor time beyond the limit, in case the page that would kill it is gone


@dataclass(frozen=True)
class Allowance:
    """Limits of a job: seconds, rows of its result, bytes of memory."""

    seconds: float = 60.0
    rows: int = 100_000
    bytes: int = 2 << 30


def allowance_of(seconds: float, rows: int, memory: str | int) -> Allowance:
    """Limits as callers write them; memory as for queries: 512M, 2G, or bytes."""
    found = bytes_of(memory)
    if seconds <= 0 or rows < 1 or not found:
        raise OptionError("limits are greater than 0", hint="leave them out for the usual ones")
    return Allowance(seconds, rows, found)


@dataclass(frozen=True)
class PageJob:
    """The state of a job. `said`: its progress, or what went wrong; `hint`: the way out; `answer`: once done."""

    state: Literal["running", "done", "failed", "stopped"]
    said: str = ""
    hint: str | None = None
    answer: Any = None
    folder: Path | None = None


class PageJobs:
    """All jobs of a page. `most`: so many run at a time; `kept`: so many answers are remembered."""

    def __init__(self, allowance: Allowance | None = None, *, most: int = 4, kept: int = 40) -> None:
        self.allowance = allowance or Allowance()
        self._most, self._kept = most, kept
        self._folder = Path(tempfile.mkdtemp(prefix="trendloom-page-"))
        self._lock = threading.Lock()
        self._jobs: OrderedDict[str, PageJob] = OrderedDict()
        self._processes: dict[str, _Process | None] = {}
        self._waited_for: set[str] = set()
        self._context = multiprocessing.get_context("forkserver")
        self._context.set_forkserver_preload(LOADED_BEFORE)

    def warm(self) -> None:
        """Start the process that jobs are forked from; it loads the engines while the page starts."""
        forkserver.ensure_running()

    def send(self, work: Work, *given: object, seconds: float | None = None, waited_for: bool = False) -> str:
        """Start a job and give its name. Those that are short and waited for have places of their own."""
        name = secrets.token_urlsafe(16)
        folder = self._folder / name
        with self._lock:
            alike = [other for other in self._processes if (other in self._waited_for) == waited_for]
            if len(alike) >= self._most:
                raise RunError(
                    f"{len(alike)} queries are running already", hint="wait until one is done, or stop yours"
                )
            if waited_for:
                self._waited_for.add(name)
            self._jobs[name] = PageJob("running", "starting", folder=folder)
            self._processes[name] = None  # takes its place before it has started
            self._forget()
        try:
            folder.mkdir()
            allowance = self.allowance if seconds is None else replace(self.allowance, seconds=seconds)
            self._start(name, work, given, allowance)
        except BaseException:
            with self._lock:
                self._processes.pop(name)
                self._drop(name)
            raise
        return name

    def look(self, name: str | None) -> PageJob:
        """The state of a job."""
        with self._lock:
            found = self._jobs.get(name or "")
        if found is None:
            raise DataError("this result is not kept any more", hint="run it again")
        return found

    def wait(self, name: str) -> PageJob:
        """The last state of a job, once it has ended."""
        with self._lock:
            process = self._processes.get(name)
        if process is not None:
            process.ended.wait()
        return self.look(name)

    def ask(self, work: Work, *given: object, seconds: float) -> Any:
        """The answer of short work, waited for; what it raises is raised here."""
        name = self.send(work, *given, seconds=seconds, waited_for=True)
        found = self.wait(name)
        with self._lock:
            self._drop(name)
        if found.state != "done":
            raise RunError(found.said, hint=found.hint)
        return found.answer

    def stop(self, name: str | None) -> None:
        """End a job, if it runs."""
        with self._lock:
            process = self._processes.get(name or "")
        if process is not None:
            process.stop()

    def close(self) -> None:
        """End all of them, and remove what they left."""
        for name in list(self._processes):
            self.stop(name)
        shutil.rmtree(self._folder, ignore_errors=True)

    # --------------------------------------------------------------------------------------------- inside

    def _start(self, name: str, work: Work, given: tuple[object, ...], allowance: Allowance) -> None:
        process = _Process(self._context, work, given, allowance, self._folder / name)
        with self._lock:
            self._processes[name] = process

        def watch() -> None:
            for state in process.states():
                with self._lock:
                    if name in self._jobs:
                        self._jobs[name] = replace(state, folder=self._folder / name)
            with self._lock:
                self._processes.pop(name, None)
            process.ended.set()

        threading.Thread(target=watch, daemon=True, name="job").start()

    def _forget(self) -> None:
        """Make room for new answers: drop the oldest of the jobs that have ended."""
        old = [name for name in self._jobs if name not in self._processes]
        for name in old[: max(0, len(self._jobs) - self._kept)]:
            self._drop(name)

    def _drop(self, name: str) -> None:
        self._waited_for.discard(name)
        if self._jobs.pop(name, None) is not None:
            shutil.rmtree(self._folder / name, ignore_errors=True)


class _Process:
    """One process and its end."""

    def __init__(self, context: Any, work: Work, given: tuple[object, ...], allowance: Allowance, folder: Path) -> None:
        self._allowance = allowance
        self._receiver, sender = context.Pipe(duplex=False)
        self._stopped = threading.Event()
        self.ended = threading.Event()
        self._process = context.Process(target=_carry_out, args=(sender, allowance, folder, work, given))
        self._process.start()
        sender.close()

    def stop(self) -> None:
        self._stopped.set()
        self._kill()

    def states(self) -> Iterator[PageJob]:
        """The states of the job up to the last one, which comes in time."""
        deadline = time.monotonic() + self._allowance.seconds
        while (found := self._next_state(deadline)).state == "running":
            yield found
        self._end(at_once=found.state != "done")
        yield PageJob("stopped", "stopped") if self._stopped.is_set() else found

    def _next_state(self, deadline: float) -> PageJob:
        try:
            if self._receiver.poll(max(0.0, deadline - time.monotonic())):
                found: PageJob = self._receiver.recv()
                return found
        except (EOFError, OSError):
            return self._lost()
        return _too_late(self._allowance)

    def _end(self, *, at_once: bool) -> None:
        """End the process: one that has answered may exit by itself, and a compiler that it started may finish."""
        self._process.join(0 if at_once else PATIENCE)
        if self._process.exitcode is None or at_once:
            self._kill()
        self._process.join()
        self._receiver.close()

    def _lost(self) -> PageJob:
        self._process.join(1)
        if self._process.exitcode == -signal.SIGXCPU:
            return _too_late(self._allowance)
        return PageJob("failed", "the process ended without an answer: it may have run out of memory", NARROW)

    def _kill(self) -> None:
        """The process with all that it started."""
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.kill()


def _too_late(allowance: Allowance) -> PageJob:
    return PageJob("failed", f"not done after {allowance.seconds:g} seconds, so it was stopped", NARROW)


# ------------------------------------------------------------------------------------------ in the process


def _carry_out(sender: Connection, allowance: Allowance, folder: Path, work: Work, given: tuple[object, ...]) -> None:
    """Do the work and send the states of the job."""
    os.setsid()
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # stopping the page stops this too, without a traceback
    _limit(allowance)

    def report(said: str) -> None:
        sender.send(PageJob("running", said))

    try:
        last = PageJob("done", answer=work(report, folder, *given))
    except TrendloomError as error:
        last = PageJob("failed", error.message, error.hint)
    except MemoryError:
        last = PageJob("failed", "there is not enough memory for this", NARROW)
    except Exception as error:
        last = PageJob("failed", f"unexpected {type(error).__name__}: {str(error).partition(chr(10))[0]}")
    sender.send(last)
    sender.close()


def _limit(allowance: Allowance) -> None:
    os.nice(NICE)
    cores = os.cpu_count() or 1
    seconds = int(allowance.seconds * cores) + GRACE
    resource.setrlimit(resource.RLIMIT_CPU, (seconds, seconds + GRACE))
    most = _mapped() + allowance.bytes
    resource.setrlimit(resource.RLIMIT_AS, (most, most))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))


def _mapped() -> int:
    """Bytes of addresses that libraries have taken already, most of which are never used."""
    try:
        return int(Path("/proc/self/statm").read_text().split()[0]) * resource.getpagesize()
    except OSError:
        return 4 << 30

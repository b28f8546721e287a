"""A process that compiles kernels one after another, while this one continues.

Numba holds a lock while it compiles, so a thread would not help. The process starts when it is first needed, writes
code into the folder that all processes of this user share, reports every kernel that is done, and ends with the process
that started it, after the kernel it is compiling. `python -m trendloom.kernels.jit.compiler_process` reads what to
compile from its standard input.
"""

from __future__ import annotations

import atexit
import os
import pickle
import select
import subprocess
import sys
from collections.abc import Callable
from contextlib import suppress
from importlib import import_module
from typing import Any, BinaryIO

from numba.core.serialize import dumps

Name = tuple[str, str, str]
"""The module of a kernel, its name there, and how it is compiled."""
OnCompile = Callable[[str | None], None]
"""Callback invoked with the name of a function when its compilation starts, here or in another process, and with None
when it ends."""

listeners: list[OnCompile] = []
"""Callbacks of this process."""


def report_compilation(name: str | None) -> None:
    """Invoke the callbacks."""
    for on_compile in listeners:
        on_compile(name and name.strip("_").replace("_", " "))


class Compiler:
    """The compiling process: `submit` kernels, and test which jobs are done."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._jobs: list[object] = []
        self._done = 0

    def submit(self, name: Name, signature: tuple[Any, ...]) -> object | None:
        """Start to compile a kernel for a signature and return the job, for `is_done`; None: there is no process."""
        try:
            process = self._started()
            assert process.stdin is not None
            pickle.dump(dumps((name, signature)), process.stdin)  # type: ignore[no-untyped-call]
            process.stdin.flush()
        except OSError:
            return None
        self._jobs.append(job := object())
        return job

    def is_done(self, job: object) -> bool:
        """Whether a job has ended: the code is in the folder, or it cannot be compiled there."""
        process = self._process
        if process is None or process.stdout is None:
            return True
        while select.select([process.stdout], [], [], 0)[0]:
            if not os.read(process.stdout.fileno(), 1):  # the process has ended, and all jobs with it
                self._done = len(self._jobs)
                break
            self._done += 1
        return job in self._jobs[: self._done]

    def leave(self) -> None:
        """Submit nothing more: the process ends after the kernel it is compiling, without being waited for."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe and pipe.close()
            process.returncode = process.poll() or 0  # else Python complains that it still runs

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self._jobs, self._done, self._owner = [], 0, os.getpid()
            atexit.register(self.leave)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "trendloom.kernels.jit.compiler_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TRENDLOOM_COMPILE": "always"},
            )
        return self._process


def serve(jobs: BinaryIO, done: BinaryIO) -> None:
    """Compile the jobs that arrive, and write a byte after each, until there are no more."""
    from trendloom.kernels.jit.compiled import KERNELS

    while True:
        try:
            name, signature = pickle.loads(pickle.load(jobs))
        except EOFError:
            return
        try:
            import_module(name[0])
            KERNELS[name].compile(signature)
        except Exception:  # the other process compiles it then, and raises the error
            pass
        done.write(b".")
        done.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)

"""Another process that compiles kernels one after another, while this one goes on.

Numba holds a lock while it compiles, so a thread would not help. The process starts when it is first needed, leaves
code in the folder that all processes of this user share, says when a kernel is done, and ends with the one that began
it, after the kernel it is busy with. `python -m trendloom.kernels.jit.compiler_process` reads what to compile from its
standard input.
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
    """The other process; `ask` it for kernels, and hear which are `done`."""

    def __init__(self) -> None:
        self._process: subprocess.Popen[bytes] | None = None
        self._owner = 0
        self._asked: list[object] = []
        self._done = 0

    def ask(self, name: Name, signature: tuple[Any, ...]) -> object | None:
        """Have a kernel compiled for a signature; what this returns is the question that `is_done` knows."""
        try:
            process = self._started()
            assert process.stdin is not None
            pickle.dump(dumps((name, signature)), process.stdin)  # type: ignore[no-untyped-call]
            process.stdin.flush()
        except OSError:
            return None
        self._asked.append(question := object())
        return question

    def is_done(self, question: object) -> bool:
        """Whether a question is answered: the code is in the folder, or it cannot be compiled there."""
        process = self._process
        if process is None or process.stdout is None:
            return True
        while select.select([process.stdout], [], [], 0)[0]:
            if not os.read(process.stdout.fileno(), 1):  # it has ended, whatever it was asked
                self._done = len(self._asked)
                break
            self._done += 1
        return question in self._asked[: self._done]

    def leave(self) -> None:
        """Ask for nothing more: the process ends when it is done with what it does, and nobody waits for it."""
        process, self._process = self._process, None
        if process is not None and self._owner == os.getpid():
            for pipe in (process.stdin, process.stdout):
                with suppress(OSError):
                    pipe and pipe.close()
            process.returncode = process.poll() or 0  # else Python complains that it still runs

    def _started(self) -> subprocess.Popen[bytes]:
        if self._process is None or self._owner != os.getpid() or self._process.poll() is not None:
            self._asked, self._done, self._owner = [], 0, os.getpid()
            atexit.register(self.leave)
            self._process = subprocess.Popen(
                [sys.executable, "-m", "trendloom.kernels.jit.compiler_process"],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env={**os.environ, "TRENDLOOM_COMPILE": "always"},
            )
        return self._process


def serve(questions: BinaryIO, answers: BinaryIO) -> None:
    """Compile what is asked for until nobody asks any more."""
    from trendloom.kernels.jit.compiled import KERNELS

    while True:
        try:
            name, signature = pickle.loads(pickle.load(questions))
        except EOFError:
            return
        try:
            import_module(name[0])
            KERNELS[name].compile(signature)
        except Exception:  # whoever asked compiles it then, and sees what is wrong
            pass
        answers.write(b".")
        answers.flush()


if __name__ == "__main__":
    serve(sys.stdin.buffer, sys.stdout.buffer)

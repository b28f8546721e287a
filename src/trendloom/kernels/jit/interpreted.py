"""Interpretation of kernels that are not compiled yet: Python or the compiler gives the answer, whichever is first.

A kernel that was never compiled on this machine takes up to seconds to compile, and for few events Python is done
before. So its first call is interpreted; when that has taken a while, another process begins to compile it, and if that
finishes first, the arguments are restored and the compiled kernel starts anew. Nothing is tuned: an answer comes after
the time of the interpreter or that of the compiler, whichever is shorter.

Numba takes about half a second to get ready for its first compiled function, also for one that lies on disk. So a
kernel over a handful of events is interpreted even where its code is there, until one has taken long or was large.

Interpreted numbers are NumPy's. They differ from compiled ones where a result leaves its type: a compiled sum of bytes
is a word, NumPy's is a byte again. An interpreted kernel that overflows anywhere is therefore given up for its compiled
form, except in functions that are marked `wraps=True`: they mean what happens to words beyond 64 bits.

`TRENDLOOM_COMPILE` is `always` (never interpret), `never`, or `auto` (the default).

Cost: arguments are copied before a kernel is interpreted, so only small ones are.
"""

from __future__ import annotations

import ctypes
import os
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

import numpy as np
from numba.core.dispatcher import OmittedArg
from numba.core.registry import CPUDispatcher

from trendloom.kernels.jit.compiler_process import Compiler, Name, report_compilation

VARIABLE = "TRENDLOOM_COMPILE"
LARGEST = 1 << 23
"""Bytes of arguments up to which a kernel is interpreted at all."""
HANDFUL = 1 << 13
"""Bytes of arguments up to which a kernel is interpreted although its code is on disk, if none was loaded yet."""
PATIENCE = 0.25
"""Seconds for which a kernel is interpreted before another process begins to compile it."""
GLANCE = 0.02
"""Seconds between two looks at whether compiled code is there."""
IDLE = 1.0
"""Seconds without an interpreted call after which the watching thread ends."""
NARROW = (np.float16, np.float32, np.complex64)
"""Types whose results a compiled kernel would widen without an overflow."""


class Overtaken(BaseException):
    """Raised inside an interpreted kernel when compiled code is there, or cannot be made by another process."""


_Dispatcher: Any = CPUDispatcher


class Interpretable(_Dispatcher):  # type: ignore[misc]
    """A compiled function that Python can stand in for. `wraps`: it relies on words that overflow."""

    wraps: bool
    interpreted: Callable[..., Any]
    name: Name | None = None
    """How another process finds it, if it can."""

    def __call__(self, *arguments: Any) -> Any:
        role = _here.role
        if role is KERNEL:
            if self.wraps and not _here.wraps:
                with wrapping():
                    return self.interpreted(*arguments)
            return self.interpreted(*arguments)
        if role is STRICT_CALLER:
            return Attempt(self, self._signature(arguments), alone=True).run(*arguments)
        return _Dispatcher.__call__(self, *arguments)

    def _compile_for_args(self, *arguments: Any, **named: Any) -> Any:
        """Return a function to call with these arguments, for which this process has no code; called by Numba."""
        if not named and mode() != "always" and not any(isinstance(one, OmittedArg) for one in arguments):
            signature = self._signature(arguments)
            if self._is_worth_interpreting(signature, arguments):
                return Attempt(self, signature, alone=mode() == "never").run
        _loaded.set()
        return _Dispatcher._compile_for_args(self, *arguments, **named)

    def _signature(self, arguments: tuple[Any, ...]) -> tuple[Any, ...]:
        found = tuple(self.typeof_pyval(one) for one in arguments)
        self._types_active_call.clear()
        return found

    def _is_worth_interpreting(self, signature: tuple[Any, ...], arguments: tuple[Any, ...]) -> bool:
        if (self, signature) in _given_up:
            return False
        if mode() == "never":
            return True
        arrays = list(arrays_of(arguments))
        size = sum(one.nbytes for one in arrays)
        if size > LARGEST or any(one.dtype.type in NARROW for one in arrays):
            return False
        return (size <= HANDFUL and not _loaded.is_set()) or not self.is_stored(signature)

    def is_stored(self, signature: tuple[Any, ...]) -> bool:
        """Whether there is compiled code on disk."""
        stored: Callable[[Any], bool] | None = getattr(self._cache, "has", None)
        return stored is not None and stored(signature)


def mode() -> str:
    """When to compile: `always`, `never` or `auto`."""
    return os.environ.get(VARIABLE, "auto")


@contextmanager
def compiled_first() -> Iterator[None]:
    """Interpret nothing for as long as this lasts, in this process and those it starts."""
    before = os.environ.get(VARIABLE)
    os.environ[VARIABLE] = "always"
    try:
        yield
    finally:
        os.environ.pop(VARIABLE) if before is None else os.environ.update({VARIABLE: before})


class Role(Enum):
    """How the calls of a thread to kernels are run."""

    CALLER = "runs kernels compiled, or interpreted until they are"
    STRICT_CALLER = "has them all interpreted"
    KERNEL = "is an interpreted kernel itself"


KERNEL, STRICT_CALLER = Role.KERNEL, Role.STRICT_CALLER  # read at every call


class _Here(threading.local):
    """What this thread is doing, and whether words may overflow."""

    role = Role.CALLER
    wraps = False


_here = _Here()


@contextmanager
def interpreted_only() -> Iterator[None]:
    """Interpret every kernel that this thread calls, compiled or not, for as long as this lasts."""
    before, _here.role = _here.role, Role.STRICT_CALLER
    try:
        yield
    finally:
        _here.role = before


def interpret(kernel: Any, *arguments: Any) -> Any:
    """Run a kernel and all that it calls as Python, over numbers that compiled code does not have, like fractions."""
    before, _here.role = _here.role, Role.KERNEL
    try:
        return getattr(kernel, "interpreted", kernel)(*arguments)
    finally:
        _here.role = before


@contextmanager
def wrapping() -> Iterator[None]:
    """Let words overflow."""
    before, _here.wraps = _here.wraps, True
    usual = np.seterr(over="ignore")
    yield
    np.seterr(**usual)
    _here.wraps = before


_spent: dict[tuple[Interpretable, Any], float] = {}
"""Seconds for which kernels were interpreted, by their signatures."""
_given_up: set[tuple[Interpretable, Any]] = set()
"""Those that are not interpreted any more in this process."""
_loaded = threading.Event()
"""Whether Numba is ready to run compiled code in this process."""


@dataclass(eq=False)
class Attempt:
    """One interpreted call of a kernel, by the thread that made this. `alone`: it is not compiled meanwhile."""

    kernel: Interpretable
    signature: tuple[Any, ...]
    alone: bool
    thread: int = field(default_factory=threading.get_ident)
    began: float = field(default_factory=time.monotonic)
    submitted: bool = False
    job: object | None = None
    stopped: bool = False

    def run(self, *arguments: Any) -> Any:
        """Interpret the kernel; or, when that is overtaken or leaves its types, run it compiled from the start."""
        before = [one.copy() for one in arrays_of(arguments)]
        try:
            return self._interpret(arguments)
        except (Overtaken, FloatingPointError, OverflowError):
            _given_up.add((self.kernel, self.signature))
        for one, content in zip(arrays_of(arguments), before, strict=True):
            if one.flags.writeable:
                one[...] = content
        return _Dispatcher.__call__(self.kernel, *arguments)

    def _interpret(self, arguments: tuple[Any, ...]) -> Any:
        usual, role = np.geterr(), _here.role
        try:
            _here.role, _here.wraps = Role.KERNEL, self.kernel.wraps
            _watch.begin(self)
            np.seterr(over="ignore" if self.kernel.wraps else "raise", divide="raise", invalid="raise", under="ignore")
            result = unboxed(self.kernel.interpreted(*arguments))
            _watch.end(self)
            self._await_exception()
            return result
        except Overtaken:
            raise
        except BaseException:
            with suppress(Overtaken):
                _watch.end(self)
                self._await_exception()
            raise
        finally:
            _watch.end(self)
            np.seterr(**usual)
            _here.role, _here.wraps = role, False
            _spent[self.kernel, self.signature] = self.spent
            if self.submitted:
                report_compilation(None)

    @property
    def spent(self) -> float:
        return _spent.get((self.kernel, self.signature), 0.0) + time.monotonic() - self.began

    def _await_exception(self) -> None:
        """Wait for `Overtaken` if it is on its way: a thread sees what another one raises in it a moment later, and it
        must not be outside of here.
        """
        while self.stopped:
            time.sleep(GLANCE / 10)

    def submit(self) -> None:
        """Start the compilation of the kernel when interpreting it takes long."""
        if not self.submitted and not self.alone and self.spent > PATIENCE:
            if self.kernel.name is not None and not self.kernel.is_stored(self.signature):
                self.job = _compiler.submit(self.kernel.name, self.signature)
            self.submitted = True
            report_compilation(self.kernel.py_func.__name__)

    def stop(self) -> None:
        """Stop when the kernel is compiled, or when no other process compiles it."""
        if self.submitted and not self.stopped and (self.job is None or _compiler.is_done(self.job)):
            self.stopped = True
            ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(self.thread), ctypes.py_object(Overtaken))


class _Lookout:
    """Watch all interpreted calls of this process from a thread that ends when there are none.

    Its lock is a plain one: an exception from outside can come at any step of Python, and `with` is safe from that only
    where taking the lock is a single one.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._attempts: list[Attempt] = []
        self._looks = False

    def begin(self, attempt: Attempt) -> None:
        with self._lock:
            self._attempts.append(attempt)
            if not self._looks:
                self._looks = True
                threading.Thread(target=self._look, name="trendloom-interpreted", daemon=True).start()

    def end(self, attempt: Attempt) -> None:
        with self._lock:
            if attempt in self._attempts:
                self._attempts.remove(attempt)

    def _look(self) -> None:
        idle = time.monotonic()
        while True:
            time.sleep(GLANCE)
            for attempt in list(self._attempts):
                attempt.submit()  # can take a moment, so the lock is not held meanwhile
                idle = time.monotonic()
            with self._lock:
                for attempt in self._attempts:
                    attempt.stop()
                if time.monotonic() - idle > IDLE:
                    self._looks = False
                    return


_watch = _Lookout()
_compiler = Compiler()


def _forget_threads() -> None:
    """A forked process has one thread, and none of the others' work."""
    global _watch, _compiler
    _watch, _compiler = _Lookout(), Compiler()


os.register_at_fork(after_in_child=_forget_threads)


def arrays_of(value: Any) -> Iterator[np.ndarray[Any, Any]]:
    """The arrays of arguments, also those in tuples."""
    if isinstance(value, np.ndarray):
        yield value
    elif isinstance(value, tuple):
        for one in value:
            yield from arrays_of(one)


def unboxed(result: Any) -> Any:
    """A result as compiled code gives it: Python's numbers instead of NumPy's."""
    if isinstance(result, np.generic):
        return result.item()
    if isinstance(result, tuple):
        parts = [unboxed(one) for one in result]
        return type(result)(*parts) if hasattr(result, "_fields") else tuple(parts)
    return result

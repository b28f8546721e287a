"""`njit`: functions that Numba compiles once per machine, operations chosen by type, callbacks about compilations.

Numba's own store of compiled code tests only whether the file of a function has changed, not the functions it calls,
and two processes that save at the same time can mix up each other's files. So kernels are kept in a `CodeFolder`
instead: there is one for each fingerprint of sources, versions and processor, and while a process compiles a function
others wait for it, and then load it.

Cost: nothing until a function is called for the first time; then one small file is read, or the function is compiled.
"""

from __future__ import annotations

import hashlib
import os
import pickle
import platform
import sys
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from functools import wraps as update
from typing import Any, TypeVar

import llvmlite
import numba
import numpy as np
from numba import types
from numba.core import config, event
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.registry import cpu_target
from numba.core.serialize import dumps
from numba.extending import overload

from trendloom.kernels.jit.code_cache import CodeFolder, fingerprint_of, package_sources, state_of
from trendloom.kernels.jit.compiler_process import Name, OnCompile, listeners, report_compilation
from trendloom.kernels.jit.interpreted import Interpretable, wrapping

INSIDE: Any = {"nogil": True, "no_cpython_wrapper": True, "no_cfunc_wrapper": True}
"""For functions that compiled code alone calls: a way in from Python would take longer to compile than what they do."""

AS_LOADED = state_of(package_sources())
"""The sources when this process began to load them: what it compiles after an edit is not kept."""

SETTINGS = ("OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
"""Settings of Numba that change the code it makes."""


KERNELS: dict[Name, Interpretable] = {}
"""All kernels of the modules loaded so far."""


def njit(
    *, cache: bool = True, wraps: bool = False, interpreted: Callable[..., Any] | None = None, **options: Any
) -> Callable[[Callable[..., Any]], Any]:
    """As `numba.njit`, with the compiled code in our own folder, and interpreted until it is there.

    `wraps`: the function relies on words that overflow. `interpreted`: what to run instead of it until then.
    """

    def decorate(function: Callable[..., Any]) -> Any:
        found: Any = numba.njit(**options)(function)
        if getattr(config, "DISABLE_JIT", False):
            return found
        found.__class__, found.wraps, found.interpreted = Interpretable, wraps, interpreted or function
        if cache:
            found._cache = StoredCode(function, options)
            if function.__closure__ is None:
                found.name = function.__module__, function.__qualname__, repr(sorted(options.items()))
                KERNELS[found.name] = found
        return found

    return decorate


@cache
def code_folder() -> CodeFolder:
    """The folder of this process."""
    return CodeFolder(fingerprint())


@cache
def fingerprint() -> str:
    """What compiled code depends on, as a name."""
    versions = sys.implementation.cache_tag, numba.__version__, llvmlite.__version__, np.__version__
    settings = [(name, str(getattr(config, name, None))) for name in SETTINGS]
    processor = cpu_target.target_context.codegen().magic_tuple()
    return fingerprint_of(package_sources(), versions, settings, platform.machine(), processor)


@cache
def packed_code() -> tuple[str, bytes]:
    """All compiled code there is now, for a machine with the same fingerprint; see `receive_code`."""
    folder = code_folder()
    content = {name: folder.load(name) for name in folder.names()}
    return folder.fingerprint, zlib.compress(pickle.dumps(content), 1)


@cache
def receive_code(made_for: str, packed: bytes) -> None:
    """Keep code that another machine has compiled, if it fits this one."""
    folder = code_folder()
    if folder.fingerprint == made_for:
        have = set(folder.names())
        for name, content in pickle.loads(zlib.decompress(packed)).items():
            if name not in have:
                folder.save(name, content)


class StoredCode(_Cache):
    """The compiled code of one function, a file for each signature; used by Numba's dispatcher."""

    def __init__(self, function: Callable[..., Any], options: dict[str, Any]) -> None:
        self._function = function
        self._options = sorted(options.items())
        self._enabled = True

    @property
    def cache_path(self) -> str:
        return str(code_folder().written)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The code for a signature; None means that the dispatcher has to compile, which is then ours to do."""
        if not self._enabled:
            return None
        target_context.refresh()
        name = self._file(sig)
        found = self._load(name, sig, target_context)
        if found is None and not code_folder().claim(name, waiting=_report_waiting):
            code_folder().release(name)
            found = self._load(name, sig, target_context)
        return found

    def save_overload(self, sig: Any, data: Any) -> None:
        if not self._enabled:
            return
        name = self._file(sig)
        if not data.library.has_dynamic_globals and not data.lifted and state_of(package_sources()) == AS_LOADED:
            code_folder().save(name, dumps((sig, data._reduce())))
        code_folder().release(name)

    def has(self, sig: Any) -> bool:
        """Whether there is code for a signature."""
        return code_folder().has(self._file(sig))

    def enable(self) -> None:
        self._enabled = True

    def disable(self) -> None:
        self._enabled = False

    def flush(self) -> None:
        """Nothing to do: code of other sources is in another folder."""

    def _load(self, name: str, sig: Any, target_context: Any) -> Any:
        content = code_folder().load(name)
        if content is None:
            return None
        stored, payload = pickle.loads(content)
        return CompileResult._rebuild(target_context, *payload) if stored == sig else None

    def _file(self, sig: Any) -> str:
        """One name per function, way to compile it, and signature."""
        function = self._function
        closed = [cell.cell_contents for cell in function.__closure__ or ()]
        digest = hashlib.sha256(f"{self._options!r}\0{sig}\0{function.__code__.co_firstlineno}".encode())
        digest.update(dumps(closed) if closed else b"")
        room = function.__module__.removeprefix("trendloom.kernels.").replace(".", os.sep)
        return os.path.join(room, f"{function.__qualname__}-{digest.hexdigest()[:24]}.code".replace("<locals>.", ""))


# ------------------------------------------------------------------------------- callbacks about compilations


@contextmanager
def observe_compilations(on_compile: OnCompile) -> Iterator[None]:
    """Invoke `on_compile` at the start and the end of every compilation within the context."""
    listener = _Outermost()
    event.register("numba:compile", listener)
    listeners.append(on_compile)
    try:
        yield
    finally:
        listeners.remove(on_compile)
        event.unregister("numba:compile", listener)


def _report_waiting() -> None:
    report_compilation("what another process compiles as well")


class _Outermost(event.Listener):
    """Reports compilations, but for those of functions that another one being compiled calls."""

    def __init__(self) -> None:
        self._depth = 0

    def on_start(self, event: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            report_compilation(event.data["dispatcher"].py_func.__name__)

    def on_end(self, event: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            report_compilation(None)


@contextmanager
def counting_compilations() -> Iterator[Counter[str]]:
    """Count compilations within the context, by module and name of the function."""
    listener = _Counted()
    event.register("numba:compile", listener)
    try:
        yield listener.found
    finally:
        event.unregister("numba:compile", listener)


class _Counted(event.Listener):
    def __init__(self) -> None:
        self.found: Counter[str] = Counter()

    def on_start(self, event: Any) -> None:
        function = event.data["dispatcher"].py_func
        self.found[f"{function.__module__}.{function.__name__}"] += 1

    def on_end(self, event: Any) -> None:
        pass


# ---------------------------------------------------------------------------------- operations chosen by type
#
# An operation is declared with its signature; `implements` adds the function that picks an implementation by the types
# of the arguments. Compiled code picks once, when it is compiled, and interpreted code at every call: the same function
# decides for both, so it may test its arguments with `class_of` and `lacks` alone, which read types and values alike.


Stub = TypeVar("Stub", bound=Callable[..., Any])
Picks = Callable[..., Callable[..., Any]]


def operation(stub: Stub) -> Stub:
    """Declare an operation; its body is never run."""

    @update(stub)
    def interpreted(*arguments: Any) -> Any:
        found: Any = interpreted
        if found.wrapping:
            with wrapping():
                return found.picks(*arguments)(*arguments)
        return found.picks(*arguments)(*arguments)

    return interpreted  # type: ignore[return-value]


def implements(declared: Callable[..., Any], options: Any, *, wraps: bool = False) -> Callable[[Picks], Picks]:
    """What follows picks an implementation of `declared`, compiled with these options. `wraps` as for `njit`."""

    def decorate(picks: Picks) -> Picks:
        declared.picks, declared.wrapping = picks, wraps  # type: ignore[attr-defined]
        overload(declared, jit_options=options)(picks)
        return picks

    return decorate


def is_interpreted(argument: Any) -> bool:
    """Whether an argument is a value, not its type: no compiler is at work."""
    return not isinstance(argument, types.Type)


def class_of(bundle: Any) -> type:
    """The class of a named tuple, given it or its type."""
    found: type = type(bundle) if isinstance(bundle, tuple) else getattr(bundle, "instance_class", type(bundle))
    return found


def lacks(bundle: Any, field: str) -> bool:
    """Whether a field of a named tuple is None, given it or its type: what needs it is not compiled."""
    if isinstance(bundle, tuple):
        return getattr(bundle, field) is None
    return isinstance(bundle.types[bundle.fields.index(field)], types.NoneType)

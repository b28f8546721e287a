"""Compiled code: never stale, shared by processes, compiled by one of them, and safe where folders are not ours."""

from __future__ import annotations

import json
import os
import pickle
import re
import shutil
import subprocess
import sys
import time
import zlib
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import trendloom
from trendloom.kernels.jit.code_cache import (
    STAMP,
    UNUSED_DAYS,
    CodeFolder,
    fingerprint_of,
    package_sources,
    wanted_root,
)
from trendloom.kernels.jit.compiled import counting_compilations, fingerprint, njit, observe_compilations, receive_code

COUNT = """
import json
from trendloom.kernels.jit.compiled import counting_compilations, fingerprint
with counting_compilations() as found:
    import numpy as np
    from trendloom.kernels.columns.segments import count_where
    answer = count_where(np.array([0, 2, 3]), np.array([False, True, False])).tolist()
ours = sum(n for name, n in found.items() if name.startswith("trendloom"))
print(json.dumps({"fingerprint": fingerprint(), "compiled": ours, "answer": answer}))
"""


def run_apart(cache: Path, source: Path | None = None) -> dict[str, object]:
    """What a process of its own compiles, with its code in `cache`, and the package in `source`."""
    found = {**os.environ, "TRENDLOOM_CACHE": str(cache)}
    found["PYTHONPATH"] = str(source or Path(trendloom.__file__).parent.parent)
    done = subprocess.run([sys.executable, "-c", COUNT], env=found, capture_output=True, text=True, check=True)
    answer: dict[str, object] = json.loads(done.stdout)
    return answer


@pytest.fixture(scope="module")
def copied(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A copy of the package, to be changed."""
    to = tmp_path_factory.mktemp("sources")
    shutil.copytree(Path(trendloom.__file__).parent, to / "trendloom", ignore=shutil.ignore_patterns("__pycache__"))
    return to


def test_the_fingerprint_changes_with_every_source_that_compiled_code_can_come_from(copied: Path) -> None:
    before = fingerprint_of(copied / "trendloom")
    assert before == fingerprint_of(package_sources())
    for name in ("kernels/columns/words.py", "kernels/aggregate/measures.py", "model/time.py", "errors.py"):
        path = copied / "trendloom" / name
        content = path.read_text()
        path.write_text(content + "\n")
        assert fingerprint_of(copied / "trendloom") != before, name
        path.write_text(content)
    path = copied / "trendloom/cli/main.py"
    path.write_text(path.read_text() + "\n")
    assert fingerprint_of(copied / "trendloom") == before


def test_the_fingerprint_changes_with_versions_and_processor() -> None:
    names = {fingerprint_of(package_sources(), *one) for one in (("0.61", "zen3"), ("0.62", "zen3"), ("0.61", "zen4"))}
    assert len(names) == 3


def test_a_second_process_compiles_nothing_and_changed_sources_are_compiled_anew(copied: Path, tmp_path: Path) -> None:
    first, second = run_apart(tmp_path), run_apart(tmp_path)
    assert first["compiled"] != 0
    assert second == {**first, "compiled": 0}
    # count_where does not change: what another file holds does
    words = copied / "trendloom/kernels/columns/words.py"
    words.write_text(words.read_text() + "\n")
    changed = run_apart(tmp_path, copied)
    assert changed["fingerprint"] != first["fingerprint"]
    assert changed["compiled"] == first["compiled"]


def test_what_is_compiled_after_an_edit_is_not_kept(copied: Path, tmp_path: Path) -> None:
    words = copied / "trendloom/kernels/columns/words.py"
    edited = COUNT.replace("    answer", f"    open({str(words)!r}, 'a').write('# edited')\n    answer")
    environment = {**os.environ, "TRENDLOOM_CACHE": str(tmp_path), "PYTHONPATH": str(copied)}
    for _ in range(2):
        subprocess.run([sys.executable, "-c", edited], env=environment, capture_output=True, check=True)
    assert list(tmp_path.rglob("*.code")) == []


def test_processes_that_start_together_compile_once(tmp_path: Path) -> None:
    with ThreadPoolExecutor() as pool:
        found = list(pool.map(lambda _: run_apart(tmp_path), range(2)))
    assert [one["answer"] for one in found] == [[1, 0]] * 2
    assert sorted(bool(one["compiled"]) for one in found) == [False, True]


def test_code_is_read_from_a_folder_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    CodeFolder("f", tmp_path / "image").save("a.code", b"from the image")
    monkeypatch.setattr(
        "trendloom.kernels.jit.code_cache.is_writable", lambda folder: "image" not in folder.parts and _make(folder)
    )
    monkeypatch.setattr("trendloom.kernels.jit.code_cache.spare_root", lambda: tmp_path / "spare")
    folder = CodeFolder("f", tmp_path / "image")
    folder.save("b.code", b"new")
    assert folder.load("a.code") == b"from the image"
    assert folder.load("b.code") == b"new"
    assert (tmp_path / "spare/f/b.code").exists()


def _make(folder: Path) -> bool:
    folder.mkdir(parents=True, exist_ok=True)
    return True


def test_a_folder_that_cannot_be_made_is_no_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("not a folder")
    folder = CodeFolder("f", tmp_path / "file")
    folder.save("a.code", b"code")
    assert folder.load("a.code") == b"code"
    assert tmp_path not in folder.written.parents


def test_a_damaged_file_is_compiled_anew(tmp_path: Path) -> None:
    folder = CodeFolder("f", tmp_path)
    folder.save("a.code", b"code")
    path = tmp_path / "f/a.code"
    path.write_bytes(path.read_bytes()[:-1])
    assert folder.load("a.code") is None


def test_folders_that_nobody_uses_are_removed(tmp_path: Path) -> None:
    for name in ("old", "recent"):
        CodeFolder(name, tmp_path).save("a.code", b"code")
    long_ago = time.time() - (UNUSED_DAYS + 1) * 86_400
    os.utime(tmp_path / "old" / STAMP, (long_ago, long_ago))
    (tmp_path / "of somebody else").mkdir()
    CodeFolder("new", tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["new", "of somebody else", "recent"]


def test_the_variable_names_the_folder(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv("TRENDLOOM_CACHE", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert wanted_root() == tmp_path / "trendloom"
    monkeypatch.delenv("XDG_CACHE_HOME")
    monkeypatch.setenv("HOME", str(tmp_path))
    assert wanted_root() == tmp_path / ".cache/trendloom"
    monkeypatch.setenv("TRENDLOOM_CACHE", str(tmp_path / "mine"))
    assert wanted_root() == tmp_path / "mine"


def test_whoever_listens_hears_what_is_compiled_and_when_it_is_over() -> None:
    @njit(cache=False)
    def _add_one(x: int) -> int:
        return x + 1

    heard: list[str | None] = []
    with observe_compilations(heard.append), counting_compilations() as found:
        assert _add_one(1) == 2
        assert _add_one(2) == 3
    _add_one(1.5)
    assert heard == ["add one", None]
    assert sum(found.values()) == 1


SEND = """
import pickle, sys
import numpy as np
from trendloom.kernels.columns.segments import count_where
from trendloom.kernels.jit.compiled import packed_code
count_where(np.array([0, 2, 3]), np.array([False, True, False]))
pickle.dump(packed_code(), open(sys.argv[1], "wb"))
"""
RECEIVE = (
    "import pickle\nfrom trendloom.kernels.jit.compiled import receive_code\n"
    "receive_code(*pickle.load(open({!r}, 'rb')))"
)


def test_code_travels_to_a_machine_of_the_same_kind(tmp_path: Path) -> None:
    """As a job takes it to the workers of a cluster: they compile nothing that the driver has compiled."""
    sent = tmp_path / "sent"
    environment = {**os.environ, "TRENDLOOM_CACHE": str(tmp_path / "driver")}
    subprocess.run([sys.executable, "-c", SEND, str(sent)], env=environment, check=True)
    received = {**os.environ, "TRENDLOOM_CACHE": str(tmp_path / "worker")}
    subprocess.run([sys.executable, "-c", RECEIVE.format(str(sent))], env=received, check=True)
    assert run_apart(tmp_path / "worker")["compiled"] == 0


def test_code_for_another_kind_of_machine_is_not_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = CodeFolder("here", tmp_path)
    monkeypatch.setattr("trendloom.kernels.jit.compiled.code_folder", lambda: folder)
    packed = zlib.compress(pickle.dumps({"a.code": b"code"}))
    receive_code("elsewhere", packed)
    assert folder.names() == []
    receive_code("here", packed)
    assert folder.load("a.code") == b"code"


def test_kernels_are_compiled_by_our_decorator_alone() -> None:
    """Numba's own would keep code that can be stale."""
    sources = (Path(trendloom.__file__).parent / "kernels").rglob("*.py")
    theirs = [path for path in sources if re.search(r"numba\.njit\b|from numba import .*\bnjit", path.read_text())]
    assert [path.name for path in theirs] == ["compiled.py"]


def test_one_function_compiled_in_two_ways_is_two_files() -> None:
    from trendloom.kernels.aggregate import type_grained

    names = {each._cache._file(()) for each in (type_grained._lean_each, type_grained._roomy_each)}
    assert len(names) == 2


def test_the_fingerprint_of_this_process_is_that_of_its_sources() -> None:
    assert len(fingerprint()) == 20

"""A served page and a browser for the tests of this folder: one server, one Chromium, a new context for each test."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from tests.dashboard.small_archive import make_archive

CHROMIUM = Path("/usr/bin/chromium")
QUIET_CHROMIUM = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
TOKEN = "a-token-that-tests-know"


@dataclass(frozen=True)
class ServedPage:
    """A page that is being served: where, by which process, and the archive that it shows. It wants a token."""

    address: str
    folder: Path
    process: subprocess.Popen[str]

    def at(self, path: str = "") -> str:
        """An address with the token."""
        return f"{self.address}{path}?token={TOKEN}"


def serve(folder: Path, *options: str, **environment: str) -> tuple[subprocess.Popen[str], str]:
    """Start `trendloom dashboard` at a free port; gives the process and the address that it tells."""
    command = [sys.executable, "-m", "trendloom", "dashboard", str(folder), "--port", "0", *options]
    process = subprocess.Popen(
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TRENDLOOM_COMPILE": "never", **environment}
    )
    assert process.stderr is not None
    said = process.stderr.readline()
    found = re.search(r"http://\S+?/", said)
    assert found, said + process.stderr.read()
    return process, found[0]


@pytest.fixture(scope="session")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedPage]:
    folder = make_archive(tmp_path_factory.mktemp("served") / "plant")
    process, address = serve(folder, "--time-limit", "20", TRENDLOOM_TOKEN=TOKEN)
    yield ServedPage(address, folder, process)
    process.terminate()
    assert process.wait(timeout=20) == 0, "it ends as it should"
    assert process.stderr is not None
    assert TOKEN not in process.stderr.read(), "nothing of a request is written anywhere"


@pytest.fixture(scope="session")
def chromium() -> Iterator[Any]:
    if not CHROMIUM.exists():
        pytest.skip("there is no /usr/bin/chromium: `make setup` installs Debian's, where it may")
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=str(CHROMIUM), args=list(QUIET_CHROMIUM))
        yield browser
        browser.close()


@pytest.fixture
def visit(chromium: Any) -> Iterator[Any]:
    """Opens pages, each in a browser of its own, and fails if one complains of anything but what is `expected`."""
    contexts = []
    troubles: list[str] = []

    def opened(address: str, *, expected: str | None = None, **settings: Any) -> Any:
        def complain(said: str) -> None:
            if expected is None or expected not in said:
                troubles.append(said)

        context = chromium.new_context(**{"viewport": {"width": 1280, "height": 800}, **settings})
        contexts.append(context)
        page = context.new_page()
        page.set_default_timeout(20_000)
        page.on("console", lambda said: complain(said.text) if said.type == "error" else None)
        page.on("pageerror", lambda error: complain(str(error)))
        page.goto(address)
        return page

    yield opened
    for context in contexts:
        context.close()
    assert troubles == []

"""Draw the pictures of the page in docs with Chromium: `python examples/dashboard_pictures.py [NAME ...]`.

The page is served over an archive of its own, used as a visitor uses it, and seen at two sizes, in the light and in the
dark.
"""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from playwright.sync_api import expect, sync_playwright

from dashboard import make_archive

PICTURES = Path(__file__).resolve().parent.parent / "docs" / "pictures"
QUIET = (
    "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run", "--disable-background-networking",
    "--disable-component-update", "--disable-sync",
)  # fmt: skip
SEEN = {"wide": {"width": 1280, "height": 800}, "small": {"width": 390, "height": 844}}
LIGHTS = ("light", "dark")
ABNORMAL = ("2014-04-16 03:00", "2014-04-16 12:00")
REFERENCE = ("2014-04-10 06:00", "2014-04-16 00:00")
BROKEN = """PATTERN   SEQ(ec2_network_in low, ec2_cpu_utilization+ idle[])
WHERE     [machine] AND idle.percnt < 40
WITHIN    1 hour"""
GOOD = """PATTERN   SEQ(ec2_cpu_utilization busy, NOT ec2_network_in n,
              ec2_cpu_utilization+ idle[], ec2_cpu_utilization back)
SEMANTICS skip-till-next-match
WHERE     [machine] AND busy.percent > 80 AND n.bytes > 5e6
          AND idle.percent < 40 AND back.percent > 80 AND count(idle[]) >= 60
WITHIN    1 day"""
expect.set_options(timeout=60_000)


def served(folder: Path) -> tuple[subprocess.Popen[str], str]:
    """The page over an archive, at a free port."""
    command = [sys.executable, "-m", "trendloom", "dashboard", str(folder), "--port", "0"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    found = re.search(r"http://\S+?/", process.stderr.readline())
    assert found is not None
    return process, found[0]


def choose(page: Any, dropdown: str, label: str) -> None:
    page.locator(f"#{dropdown}").click()
    page.get_by_role("option", name=re.compile(re.escape(label))).first.click()


def mark(page: Any, kind: str, low: str, high: str) -> None:
    page.get_by_label(kind, exact=True).check()
    page.get_by_label("From", exact=True).fill(low)
    page.get_by_label("To", exact=True).locator("visible=true").fill(high)
    page.get_by_role("button", name="Mark", exact=True).click()
    expect(page.locator(f".mark.{kind.lower()}")).to_have_count(1)


def see_reason(page: Any) -> None:
    """From the chart of a machine's load to the reason why it fell."""
    expect(page.locator("#chart .scatterlayer .points path").first).to_be_attached()
    choose(page, "partition", "machine = 825cc2")
    choose(page, "value", "mean")
    mark(page, "Abnormal", *ABNORMAL)
    mark(page, "Reference", *REFERENCE)
    page.get_by_label("Window of features").fill("1 h")
    page.get_by_role("button", name="Why?").click()
    expect(page.locator(".reason .main-svg").first).to_be_visible()


def see_error(page: Any) -> None:
    """A query that is wrong, and where."""
    page.locator("#to-workbench").click()
    page.get_by_label("Query text").fill(BROKEN)
    expect(page.locator("#underlined mark")).to_be_visible()


def see_rows(page: Any) -> None:
    """A query that is right: its pattern and its rows."""
    page.locator("#to-workbench").click()
    page.get_by_label("Query text").fill(GOOD)
    expect(page.locator("#pattern .main-svg").first).to_be_visible()
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#timeline .main-svg").first).to_be_visible()
    expect(page.locator("#rows-table table")).to_be_visible()


def picture(browser: Any, address: str, name: str, size: str, light: str) -> Path:
    context = browser.new_context(viewport=SEEN[size], color_scheme=light)
    page = context.new_page()
    page.goto(address)
    {"reason": see_reason, "error": see_error, "rows": see_rows}[name](page)
    page.mouse.move(0, 0)
    page.evaluate("document.activeElement.blur()")
    page.wait_for_load_state("networkidle")
    target = PICTURES / f"dashboard-{name}-{size}-{light}.png"
    page.screenshot(path=str(target), full_page=True)
    context.close()
    return target


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        archive = Path(folder) / "metrics"
        make_archive(archive)
        process, address = served(archive)
        browser = playwright.chromium.launch(executable_path="/usr/bin/chromium", args=list(QUIET))
        try:
            for name in names:
                for size in SEEN:
                    for light in LIGHTS:
                        print(picture(browser, address, name, size, light))
        finally:
            browser.close()
            process.terminate()
            process.wait()


if __name__ == "__main__":
    main(sys.argv[1:] or ["reason", "error", "rows"])

"""The page as a visitor has it, in headless Chromium: from a chart to a saved monitor, from a broken query to rows."""

from __future__ import annotations

import re
from typing import Any

from playwright.sync_api import expect
from tests.dashboard.conftest import TOKEN, ServedPage
from tests.dashboard.small_archive import add_results

from trendloom.archive import open_archive

BROKEN = "PATTERN SEQ(Memory m, Task t)\nWHERE m.fre < 100"
GOOD = "PATTERN SEQ(Memory m, Task t)\nSEMANTICS skip-till-next-match\nWHERE [node] AND m.free < 100\nWITHIN 10 s"
expect.set_options(timeout=20_000)  # milliseconds: tests share two cores with others
FOR_EVER = "PATTERN Task+ a[]\nWHERE avg(a[].seconds) > 1000"


def choose(page: Any, dropdown: str, label: str) -> None:
    page.locator(f"#{dropdown}").click()
    page.get_by_role("option", name=re.compile(re.escape(label))).first.click()
    expect(page.locator(f"#{dropdown}")).to_have_attribute("aria-expanded", "false")


def drag(page: Any, begin: float, end: float) -> None:
    """Drag over a part of the chart, from one share of its width to another."""
    box = page.locator("#chart .nsewdrag").first.bounding_box()
    height = box["y"] + box["height"] / 2
    page.mouse.move(box["x"] + box["width"] * begin, height)
    page.mouse.down()
    page.mouse.move(box["x"] + box["width"] * end, height, steps=6)
    page.mouse.up()


def with_chart(page: Any) -> Any:
    expect(page.locator("#chart .scatterlayer .points path").first).to_be_attached()
    return page


def test_from_a_chart_to_a_saved_monitor(served: ServedPage, visit: Any) -> None:
    page = with_chart(visit(served.at()))
    choose(page, "partition", "node = n1")
    choose(page, "value", "seconds")
    expect(page.locator("#chart .ytitle")).to_have_text("seconds")
    drag(page, 0.53, 0.63)
    expect(page.locator(".mark.abnormal")).to_have_count(1)
    page.get_by_label("Reference", exact=True).check()
    drag(page, 0.10, 0.45)
    expect(page.locator(".mark.reference")).to_have_count(1)
    page.get_by_role("button", name="Why?").click()
    expect(page.locator("#sentence")).to_contain_text("free memory")
    expect(page.locator(".reason .main-svg").first).to_be_visible()
    page.get_by_text("why the rest was not kept").click()
    expect(page.locator("#candidates")).to_contain_text("correlates with Memory.free mean over 30 s")
    page.get_by_label("Name of the monitor").fill("memory_low")
    page.get_by_role("button", name="Save as monitor").click()
    expect(page.locator("#monitor-said")).to_contain_text("the monitor is saved")
    assert open_archive(served.folder).monitors()["memory_low"]["precision"] == 1.0


def test_marks_by_keyboard_alone(served: ServedPage, visit: Any) -> None:
    page = with_chart(visit(served.at()))
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    page.get_by_label("From", exact=True).focus()
    page.keyboard.type("2023-11-14 22:28:00")
    page.keyboard.press("Tab")
    page.keyboard.type("2023-11-14 22:33:00")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator(".mark.abnormal")).to_contain_text("2023-11-14 22:28:00 to 2023-11-14 22:33:00")
    page.get_by_role("button", name="Remove abnormal").press("Enter")
    expect(page.locator(".mark")).to_have_count(0)
    page.get_by_role("button", name="Mark", exact=True).press("Enter")
    expect(page.locator(".mark")).to_have_count(1)
    page.get_by_role("button", name="Clear all").press("Enter")
    expect(page.locator(".mark")).to_have_count(0)


def test_from_a_broken_query_to_rows(served: ServedPage, visit: Any) -> None:
    page = visit(served.at("workbench"))
    text = page.get_by_label("Query text")
    text.fill(BROKEN)
    expect(page.locator("#problem .error")).to_contain_text("Memory has no attribute 'fre'")
    expect(page.locator("#problem .error")).to_contain_text("did you mean 'free'?")
    expect(page.locator("#underlined mark")).to_have_text("fre")
    page.get_by_role("button", name="Go to line 2, column 9").click()
    assert page.evaluate("[document.activeElement.id, document.activeElement.selectionStart]") == ["text", 38]
    text.fill(GOOD)
    expect(page.locator("#pattern .main-svg").first).to_be_visible()
    expect(page.locator("#underlined mark")).to_have_count(0)
    page.get_by_text("Plan", exact=True).click()
    expect(page.locator(".plan")).to_contain_text("Physical plan")
    text.press("Control+Enter")
    expect(page.locator("#run-said .good")).to_contain_text("rows from")
    expect(page.locator("#rows-table tbody tr")).to_have_count(25)
    expect(page.locator("#timeline .main-svg").first).to_be_visible()
    page.get_by_role("button", name="Next").click()
    expect(page.locator("#page-said")).to_contain_text("page 2 of")
    for kind in ("CSV", "Parquet"):
        with page.expect_download() as taken:
            page.get_by_role("link", name=f"Download {kind}", exact=False).click()
        assert taken.value.suggested_filename == f"rows.{kind.lower()}"


def test_a_query_that_would_run_for_ever_is_ended(served: ServedPage, visit: Any) -> None:
    page = visit(served.at("workbench"))
    page.get_by_label("Query text").fill(FOR_EVER)
    choose(page, "run-seconds", "5 s")
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-said .error")).to_contain_text("not done after 5 seconds", timeout=20_000)
    page.get_by_role("button", name="Run", exact=True).click()
    expect(page.locator("#run-said .busy")).to_be_visible()
    page.get_by_role("button", name="Stop", exact=True).locator("visible=true").click()
    expect(page.locator("#run-said")).to_contain_text("stopped before it was done")


def test_two_visitors_do_not_see_each_other(served: ServedPage, visit: Any) -> None:
    one, other = (with_chart(visit(served.at())) for _ in range(2))
    drag(one, 0.2, 0.4)
    expect(one.locator(".mark.abnormal")).to_have_count(1)
    expect(other.locator(".mark")).to_have_count(0)
    for page, name in ((one, "ones"), (other, "twos")):
        page.locator("#to-workbench").click()
        page.get_by_label("Query text").fill(f"RETURN COUNT(*) AS {name} PATTERN Task t")
        page.get_by_role("button", name="Run", exact=True).click()
    expect(one.locator("#rows-table th")).to_have_text(["ones"])
    expect(other.locator("#rows-table th")).to_have_text(["twos"])


def test_data_runs_no_script_and_a_stream_is_followed(served: ServedPage, visit: Any) -> None:
    page = with_chart(visit(served.at()))
    choose(page, "partition", "node = n1")
    choose(page, "partition", "node = <script>")
    expect(page.locator("#partition")).to_contain_text("<script>window.hacked = 1</script>")
    choose(page, "partition", "node = n1")
    points = page.locator("#chart .scatterlayer .points path")
    before = points.count()
    page.get_by_label("Follow a running stream").check()
    add_results(served.folder)
    expect(points).to_have_count(before + 1)
    page.locator("#to-workbench").click()
    page.get_by_label("Query text").fill("PATTERN SEQ(`<img src=x onerror=window.hacked=3>` a, Disk `<b>d</b>`)")
    expect(page.locator("#pattern")).to_contain_text("<b>d</b>")
    assert page.evaluate("window.hacked") is None


def test_light_and_dark_and_small(served: ServedPage, visit: Any) -> None:
    page = with_chart(visit(served.at(), color_scheme="dark", viewport={"width": 390, "height": 844}))
    colour = "getComputedStyle(document.body).backgroundColor"
    assert page.evaluate(colour) == "rgb(16, 20, 26)"
    assert page.evaluate("document.documentElement.scrollWidth") <= 390, "nothing is wider than the screen"
    page.get_by_role("button", name="Theme: auto").click()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()
    assert page.evaluate(colour) == "rgb(245, 246, 248)"
    page.reload()
    expect(page.get_by_role("button", name="Theme: light")).to_be_visible()


def test_a_token_opens_the_page(served: ServedPage, visit: Any) -> None:
    # what a browser complains of arrives some time later, so a visitor who is refused has a page of its own
    refused = visit(served.address, expected="401 (UNAUTHORIZED)")
    expect(refused.locator("body")).to_contain_text("a token is needed")
    refused.goto(f"{served.address}?token=not-the-right-one")
    expect(refused.locator("body")).to_contain_text("a token is needed")
    let_in = visit(served.at())
    assert let_in.url == served.address
    assert TOKEN not in with_chart(let_in).content()

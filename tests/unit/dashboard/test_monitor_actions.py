"""The page "Monitor" without a browser: choosing, drawing, marking, asking why, saving; and what is made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from plotly.utils import PlotlyJSONEncoder
from tests.dashboard.small_archive import ABNORMAL, NODES, REFERENCE, SCRIPT, add_results, make_archive

from trendloom.archive import open_archive
from trendloom.dashboard.app_state import AppState, archives_at, attempt
from trendloom.dashboard.jobs import PageJobs
from trendloom.dashboard.marks import Marks
from trendloom.dashboard.monitor import Chosen, Monitoring, monitor_name, windows_in
from trendloom.errors import DataError, OptionError, TrendloomError

N1 = Chosen("plant", "latency", json.dumps(["n1"]), "seconds")


@pytest.fixture(scope="module")
def page(app_state: AppState) -> Monitoring:
    return Monitoring(app_state)


def as_text(shown: Any) -> str:
    """What a browser would receive."""
    return json.dumps(shown, cls=PlotlyJSONEncoder)


def marked(abnormal: tuple[int, int] | None = ABNORMAL, reference: tuple[int, int] | None = REFERENCE) -> Any:
    found = Marks(N1.chart)
    for kind, one in (("abnormal", abnormal), ("reference", reference)):
        found = found if one is None else found.with_mark(kind, *one)
    return found.to_json()


def test_there_is_something_to_choose(page: Monitoring) -> None:
    assert page.queries("plant") == ["latency"]
    assert {one.key for one in page.partitions("plant", "latency")} == {(("node", node),) for node in NODES}
    assert {"seconds", "tasks"} <= set(page.values("plant", "latency"))


@pytest.mark.parametrize(
    "chosen",
    [
        Chosen("../plant", "latency", N1.partition),
        Chosen("/etc", "latency", N1.partition),
        Chosen(None, "latency", N1.partition),
        Chosen(["plant"], "latency", N1.partition),
        Chosen({"plant": 1}, "latency", N1.partition),
        Chosen("plant", "../latency", N1.partition),
        Chosen("plant", None, N1.partition),
        Chosen("plant", "latency", '["n9"]'),
        Chosen("plant", "latency", "../../etc/passwd"),
        Chosen("plant", "latency", {"node": "n1"}),
    ],
)
def test_what_is_not_there_is_refused(page: Monitoring, chosen: Chosen) -> None:
    with pytest.raises(DataError):
        page.look_up(chosen)
    found, said = attempt(page.chart, chosen, None)
    assert found is None
    assert "message error" in as_text(said)


def test_the_chart_has_the_series_and_what_was_marked(page: Monitoring) -> None:
    figure, window, said = page.chart(N1, marked())
    (trace,) = figure.data
    assert len(trace.x) == len(trace.y) == 60
    assert max(trace.y) > 9
    assert [shape.fillcolor for shape in figure.layout.shapes] == ["#D55E00", "#0072B2"]
    assert (window, said) == ("30 s", [])
    assert not page.chart(N1, {**marked(), "chart": "another"})[0].layout.shapes


def test_the_value_chosen_is_drawn_and_an_unknown_one_is_not_asked_for(page: Monitoring) -> None:
    tasks = page.chart(Chosen("plant", "latency", N1.partition, "tasks"), None)[0]
    assert tasks.layout.yaxis.title.text == "tasks"
    other = page.chart(Chosen("plant", "latency", N1.partition, "__class__"), None)[0]
    assert other.layout.yaxis.title.text in page.values("plant", "latency")


def test_marks_by_dragging_and_by_typing(page: Monitoring) -> None:
    dragged = {"range": {"x": ["2023-11-14 22:28:00.1", "2023-11-14 22:32:59.2"]}}
    found = page.mark_selected(N1, None, "abnormal", dragged)
    assert found is not None
    typed = page.mark_typed(N1, found.to_json(), "reference", "2023-11-14 22:14:00", "2023-11-14T22:20:00")
    assert [kind for kind, _ in typed.listed()] == ["abnormal", "reference"]
    listed = as_text(page.listed(N1, typed.to_json()))
    assert "abnormal: 2023-11-14 22:28:00 to 2023-11-14 22:33:00" in listed
    assert "Remove reference: 2023-11-14 22:14:00 to 2023-11-14 22:20:00" in listed
    assert page.mark_selected(N1, None, "abnormal", None) is None
    with pytest.raises(OptionError, match="two times"):
        page.mark_typed(N1, None, "abnormal", "2023-11-14", " ")


def test_the_reason_with_its_chart_and_what_was_not_kept(page: Monitoring, folder: Path) -> None:
    name = page.ask(N1, marked(), "30 s")
    page.app_state.jobs.wait(name)
    job, shown = page.reason(name)
    assert job.state == "done"
    text = as_text(shown)
    assert "free memory" in job.answer.diagnosis.sentence
    assert job.answer.diagnosis.sentence in json.loads(text)[0]["props"]["children"]
    assert "Memory.free mean over 30 s" in text
    assert "correlates with" in text
    assert any("dash" in (shape.line.dash or "") for shape in _figures(shown)[0].layout.shapes), "the boundary"
    with pytest.raises(OptionError, match="name"):
        page.save(name, "../../monitor")
    saving = page.save(name, "memory_low")
    page.app_state.jobs.wait(saving)
    said, over = page.saved(saving)
    assert over
    assert "precision 1.00" in as_text(said)
    assert "memory_low" in open_archive(folder).monitors()
    with pytest.raises(OptionError, match="already"):
        page.save(name, "memory_low")


def _figures(shown: Any) -> list[Any]:
    found = [getattr(shown, "figure", None)] if getattr(shown, "figure", None) is not None else []
    children = shown if isinstance(shown, list) else getattr(shown, "children", None)
    for child in children if isinstance(children, list) else [children]:
        found += _figures(child) if hasattr(child, "children") or hasattr(child, "figure") else []
    return found


def test_what_goes_wrong_with_a_reason_is_told(page: Monitoring) -> None:
    with pytest.raises(OptionError, match="nothing is marked as abnormal"):
        page.ask(N1, marked(abnormal=None), "30 s")
    name = page.ask(N1, marked(), "30 parsecs")
    page.app_state.jobs.wait(name)
    job, shown = page.reason(name)
    assert job.state == "failed"
    assert "parsecs" in as_text(shown)
    with pytest.raises(OptionError, match="no reason to keep"):
        page.save(name, "fine")
    with pytest.raises(DataError):
        page.reason("made up")


@pytest.mark.parametrize("name", ["", None, "../x", "a/b", ".hidden", "-rf", "x" * 65, "a b", "ä", "a\nb"])
def test_names_of_monitors_are_plain(name: object) -> None:
    with pytest.raises(OptionError):
        monitor_name(name)


def test_windows_are_one_or_several() -> None:
    assert windows_in(" 30 s, 5 min ,") == ("30 s", "5 min")
    for wrong in ("", None, " , ", ",".join(["1 s"] * 7)):
        with pytest.raises(OptionError):
            windows_in(wrong)


def test_data_is_text_wherever_it_stands(page: Monitoring) -> None:
    scripted = Chosen("plant", "latency", json.dumps([SCRIPT]), "seconds")
    text = as_text(page.chart(scripted, None)[0])
    assert "<script" not in text, "Plotly reads HTML in what it writes"
    labels = [one.label for one in page.partitions("plant", "latency")]
    assert any(SCRIPT in label for label in labels), "React shows text as it is"


def test_a_running_stream_is_seen(tmp_path: Path, jobs: PageJobs) -> None:
    root = make_archive(tmp_path / "live")
    page = Monitoring(AppState(archives_at([root]), jobs))
    before, chosen = page.version("live"), Chosen("live", "latency", N1.partition, "seconds")
    assert page.version("live") == before
    drawn = len(page.chart(chosen, None)[0].data[0].x)
    add_results(root)
    assert page.version("live") != before
    assert len(page.chart(chosen, None)[0].data[0].x) == drawn + 1


def test_a_damaged_file_is_told_on_the_page(tmp_path: Path, jobs: PageJobs) -> None:
    root = make_archive(tmp_path / "torn")
    next((root / "events").rglob("*.parquet")).write_bytes(b"torn")
    page = Monitoring(AppState(archives_at([root]), jobs))
    _, _, said = page.chart(Chosen("torn", "latency", N1.partition, "seconds"), None)
    assert "is damaged and left out" in as_text(said)


def test_archives_of_one_name_are_told_apart(tmp_path: Path) -> None:
    roots = [make_archive(tmp_path / one / "plant") for one in ("a", "b")]
    assert dict(archives_at([*roots, roots[0]])) == {"plant": roots[0].resolve(), "plant (2)": roots[1].resolve()}
    with pytest.raises(OptionError):
        archives_at([])
    with pytest.raises(TrendloomError):
        archives_at([tmp_path])

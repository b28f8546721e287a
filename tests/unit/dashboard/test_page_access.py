"""Who may ask for what: names, origins, tokens, sizes; and what answers tell the browser."""

from __future__ import annotations

import logging
from typing import Any

import pytest

from trendloom.dashboard.access import LARGEST_BODY, Access
from trendloom.dashboard.app import make_app
from trendloom.dashboard.app_state import Archives
from trendloom.dashboard.jobs import PageJobs
from trendloom.errors import OptionError

TOKEN = "a-token-of-some-length"
HOME = {"base_url": "http://127.0.0.1:8050"}


@pytest.fixture(scope="module")
def visitor(archives: Archives, jobs: PageJobs) -> Any:
    return make_app(archives, jobs, Access()).server.test_client


@pytest.fixture(scope="module")
def guarded(archives: Archives, jobs: PageJobs) -> Any:
    return make_app(archives, jobs, Access("0.0.0.0", 8050, TOKEN, ("plant.example",))).server.test_client


@pytest.mark.parametrize("host", ["127.0.0.1:8050", "localhost:8050", "[::1]:8050", "LOCALHOST"])
def test_our_own_names_are_known(visitor: Any, host: str) -> None:
    assert visitor().get("/", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    "host", ["evil.example", "127.0.0.1.evil.example:8050", "10.0.0.7", "", "[bad", "a@evil.example"]
)
def test_other_names_were_pointed_at_us(visitor: Any, host: str) -> None:
    assert visitor().get("/", headers={"Host": host}).status_code == 421


def test_beyond_loopback_numbers_and_given_names_are_known() -> None:
    access = Access("0.0.0.0", 8050, TOKEN, ("plant.example",))
    assert access.is_own_host("192.168.1.7:8050")
    assert access.is_own_host("plant.example")
    assert not access.is_own_host("evil.example")
    assert not Access("10.1.2.3", 8050, TOKEN).is_own_host("10.1.2.4")


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "same-site"},
    ],
)
def test_other_pages_change_nothing_here(visitor: Any, headers: dict[str, str]) -> None:
    assert visitor().post("/_dash-update-component", json={}, headers=headers, **HOME).status_code == 403


def test_our_own_page_is_answered(visitor: Any) -> None:
    headers = {"Origin": "http://127.0.0.1:8050", "Sec-Fetch-Site": "same-origin"}
    assert visitor().get("/_dash-layout", headers=headers, **HOME).status_code == 200


def test_bodies_are_limited(visitor: Any) -> None:
    answer = visitor().post(
        "/_dash-update-component", data=b"x" * (LARGEST_BODY + 1), content_type="application/json", **HOME
    )
    assert answer.status_code == 413


def test_what_no_action_expects_is_told_on_the_page(visitor: Any) -> None:
    asked = {
        "output": "..rows-table.children...page-said.children...page-previous.disabled...page-next.disabled..",
        "outputs": [
            {"id": "rows-table", "property": "children"},
            {"id": "page-said", "property": "children"},
            {"id": "page-previous", "property": "disabled"},
            {"id": "page-next", "property": "disabled"},
        ],
        "inputs": [{"id": "page-number", "property": "data", "value": {"job": "x", "page": "not a number"}}],
        "changedPropIds": ["page-number.data"],
    }
    answer = visitor().post("/_dash-update-component", json=asked, **HOME)
    assert answer.status_code in (200, 204)
    assert "unexpected ValueError" in answer.get_data(as_text=True)
    assert "Traceback" not in answer.get_data(as_text=True)


def test_answers_tell_the_browser_to_run_nothing_else(visitor: Any) -> None:
    headers = visitor().get("/", **HOME).headers
    policy = headers["Content-Security-Policy"]
    scripts = next(part for part in policy.split("; ") if part.startswith("script-src"))
    assert "unsafe" not in scripts
    assert "'sha256-" in scripts
    assert "default-src 'none'" in policy
    assert "frame-ancestors 'none'" in policy
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


def test_nothing_is_loaded_from_elsewhere(visitor: Any) -> None:
    page = visitor().get("/", **HOME).get_data(as_text=True)
    for part in page.split('<script src="')[1:] + page.split('href="')[1:]:
        assert part.startswith("/"), part[:60]


@pytest.mark.parametrize(
    "path",
    [
        "/assets/../app.py",
        "/assets/..%2fapp.py",
        "/assets/%2e%2e/%2e%2e/errors.py",
        "/assets//etc/passwd",
        "/_dash-component-suites/../../etc/passwd",
        "/_dash-component-suites/dash/../../../../../../etc/passwd",
        "/_dash-component-suites/trendloom/errors.py",
        "/download/../../etc/passwd",
        "/download/..%2f..%2fetc%2fpasswd/csv",
        "/download/unknown/csv",
        "/download/unknown/..%2frows.parquet",
    ],
)
def test_paths_lead_nowhere_else(visitor: Any, path: str) -> None:
    answer = visitor().get(path, **HOME)
    text = answer.get_data(as_text=True)
    assert answer.status_code in (404, 500) or "react-entry-point" in text  # unknown paths are the page itself
    assert "root:" not in text
    assert "import annotations" not in text


# -------------------------------------------------------------------------------------------------- tokens


@pytest.mark.parametrize(
    "path", ["/", "/_dash-layout", "/assets/style.css", "/download/x/csv", "/_dash-component-suites/x"]
)
@pytest.mark.parametrize(
    "query", ["", "?token=", "?token=wrong-but-long-enough", f"?token={TOKEN}x", f"?token={TOKEN[:-1]}"]
)
def test_without_the_token_there_is_nothing(guarded: Any, path: str, query: str) -> None:
    answer = guarded().get(path + query, **HOME)
    assert answer.status_code == 401
    assert "Set-Cookie" not in answer.headers


def test_the_token_is_given_once_and_becomes_a_cookie(guarded: Any) -> None:
    browser = guarded()
    answer = browser.get(f"/workbench?token={TOKEN}&x=1", **HOME)
    assert (answer.status_code, answer.headers["Location"]) == (302, "/workbench?x=1")
    cookie = answer.headers["Set-Cookie"]
    assert TOKEN not in cookie
    assert "HttpOnly" in cookie
    assert "SameSite=Lax" in cookie
    assert browser.get("/", **HOME).status_code == 200
    assert guarded().get("/", **HOME).status_code == 401, "another browser has no cookie"


def test_programs_give_the_token_in_a_header(guarded: Any) -> None:
    assert guarded().get("/", headers={"Authorization": f"Bearer {TOKEN}"}, **HOME).status_code == 200
    assert guarded().get("/", headers={"Authorization": "Bearer nothing"}, **HOME).status_code == 401


@pytest.mark.parametrize("cookie", ["", TOKEN, "0" * 64])
def test_a_cookie_that_was_made_up_is_worth_nothing(guarded: Any, cookie: str) -> None:
    browser = guarded()
    browser.set_cookie("trendloom-8050", cookie, domain="127.0.0.1")
    assert browser.get("/", **HOME).status_code == 401


@pytest.mark.parametrize("path", ["//evil.example/", "/\\evil.example/", "///evil.example"])
def test_the_token_leads_to_no_other_server(guarded: Any, path: str) -> None:
    answer = guarded().get(f"{path}?token={TOKEN}", **HOME)
    location = answer.headers.get("Location", "/")
    assert not location.startswith(("//", "/\\", "http://evil"))


def test_the_token_is_not_logged(guarded: Any, caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.DEBUG):
        guarded().get(f"/?token={TOKEN}", **HOME)
        guarded().get("/?token=wrong-but-long-enough", **HOME)
    assert TOKEN not in caplog.text
    assert "wrong-but" not in caplog.text
    assert TOKEN not in repr(Access("0.0.0.0", 8050, TOKEN))


# ------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "192.168.1.7", "plant.example", ""])
def test_beyond_loopback_a_token_is_needed(host: str) -> None:
    with pytest.raises(OptionError, match="needs a token") as caught:
        Access(host)
    assert "token=" in str(caught.value.hint)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.0.0.9", "::1", "localhost"])
def test_on_loopback_none_is_needed(host: str) -> None:
    assert Access(host).token is None


def test_a_token_that_can_be_guessed_is_refused() -> None:
    with pytest.raises(OptionError, match="can be guessed"):
        Access(token="secret")


def test_a_port_is_a_port() -> None:
    with pytest.raises(OptionError, match="not a port"):
        Access(port=70_000)

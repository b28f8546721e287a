"""Zones: local times become moments by one rule, which is that of zoneinfo, for any unit and any year."""

from __future__ import annotations

import datetime as dt
from pathlib import Path
from zoneinfo import ZoneInfo

import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from trendloom.errors import OptionError
from trendloom.io.events import prepare
from trendloom.io.read import open_events
from trendloom.io.timestamps import in_zone, local_times
from trendloom.model.time import zone_named

PARIS = "Europe/Paris"
TWICE = dt.datetime(2024, 10, 27, 2, 30)  # clocks show it twice
NEVER = dt.datetime(2024, 3, 31, 2, 30)  # and this not at all
UNHURRIED = settings(deadline=None, suppress_health_check=[HealthCheck.too_slow])
ZONES = [PARIS, "America/St_Johns", "Asia/Kolkata", "Australia/Lord_Howe", "UTC", "-03:30"]


def moment(local: dt.datetime, zone: str) -> dt.datetime:
    return local.replace(tzinfo=zone_named(zone)).astimezone(dt.UTC)


@UNHURRIED
@given(
    st.lists(st.datetimes(dt.datetime(1850, 1, 1), dt.datetime(2150, 1, 1)) | st.none(), max_size=6),
    st.sampled_from(ZONES),
)
def test_local_times_are_what_zoneinfo_says(times: list[dt.datetime | None], zone: str) -> None:
    column = pa.chunked_array([pa.array(times, pa.timestamp("us"))])
    found = in_zone(column, zone)
    assert found.type == pa.timestamp("us", zone)
    assert found.cast(pa.timestamp("us", "UTC")).to_pylist() == [one and moment(one, zone) for one in times]


@UNHURRIED
@given(st.datetimes(dt.datetime(1850, 1, 1), dt.datetime(2150, 1, 1)), st.sampled_from(ZONES))
def test_moments_are_shown_as_clocks_show_them(when: dt.datetime, zone: str) -> None:
    column = pa.chunked_array([pa.array([when.replace(tzinfo=dt.UTC)], pa.timestamp("us", zone))])
    shown = when.replace(tzinfo=dt.UTC).astimezone(zone_named(zone))
    assert local_times(column).to_pylist() == [shown.replace(tzinfo=None)]


def test_hours_that_clocks_repeat_or_skip() -> None:
    column = pa.chunked_array([pa.array([TWICE, NEVER], pa.timestamp("ns"))])
    repeated, skipped = in_zone(column, PARIS).cast(pa.timestamp("us", "UTC")).to_pylist()
    assert repeated == dt.datetime(2024, 10, 27, 0, 30, tzinfo=dt.UTC)  # the first time they show it
    assert skipped == dt.datetime(2024, 3, 31, 1, 30, tzinfo=dt.UTC)  # what they call 03:30


class TestEvents:
    def test_all_times_without_a_zone_get_it(self) -> None:
        naive = pa.array([TWICE], pa.timestamp("ms"))
        zoned = pa.array([TWICE], pa.timestamp("us", "Asia/Tokyo"))
        table = pa.table({"time": naive, "type": ["A"], "other": naive, "zoned": zoned})
        events = prepare(table, time_zone=PARIS)
        assert events.table.schema.field("time").type == pa.timestamp("us", PARIS)
        assert events.table.schema.field("other").type == pa.timestamp("ms", PARIS)
        assert events.table.schema.field("zoned").type == zoned.type
        assert events.ticks is not None
        assert events.ticks[0] == moment(TWICE, PARIS).timestamp() * 1e6

    def test_without_one_they_are_utc_and_stay_as_they_are(self) -> None:
        events = prepare(pa.table({"time": pa.array([TWICE], pa.timestamp("us")), "type": ["A"]}))
        assert events.table.schema.field("time").type == pa.timestamp("us")
        assert events.ticks is not None
        assert events.ticks[0] == moment(TWICE, "UTC").timestamp() * 1e6

    def test_text_may_name_its_offset(self) -> None:
        table = pa.table({"time": ["2024-07-01T12:00:00", "2024-07-01T12:00:00Z", "2024-07-01"], "type": ["A"] * 3})
        times = prepare(table, time_zone=PARIS).table["time"]
        assert times.type == pa.timestamp("us", PARIS)
        assert [one.astimezone(dt.UTC).hour for one in times.to_pylist()] == [10, 12, 22]

    def test_files_of_mixed_text(self, tmp_path: Path) -> None:
        """What says its zone and what does not are told apart before the zone of the others is known."""
        lines = ['{"time": "2024-07-01T12:00:00", "type": "A"}', '{"time": "2024-07-01T12:00:00Z", "type": "A"}']
        (tmp_path / "e.jsonl").write_text("\n".join(lines))
        times = prepare(open_events(tmp_path / "e.jsonl", time_zone=PARIS).read(), time_zone=PARIS).table["time"]
        assert [one.astimezone(dt.UTC).hour for one in times.to_pylist()] == [10, 12]

    def test_days_begin_in_the_zone(self) -> None:
        table = pa.table({"time": pa.array([dt.date(2024, 7, 1)]), "type": ["A"]})
        (found,) = prepare(table, time_zone=PARIS).table["time"].to_pylist()
        assert found == dt.datetime(2024, 7, 1, tzinfo=ZoneInfo(PARIS))


@pytest.mark.parametrize(
    ("name", "hint"),
    [
        ("Europe/Pariss", "did you mean 'Europe/Paris'?"),
        ("paris", "did you mean 'Europe/Paris'?"),
        ("new york", "did you mean 'America/New_York'?"),
        ("+25:00", "for example Europe/Paris, UTC or +02:00"),
        ("", "for example"),
        ("../etc", "for example"),
    ],
)
def test_unknown_zones(name: str, hint: str) -> None:
    with pytest.raises(OptionError, match="there is no time zone") as error:
        zone_named(name)
    assert hint in str(error.value)

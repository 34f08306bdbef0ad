"""Times as files write them: read within bounds, or refused in a sentence, whatever stands there."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from autograder.vocabulary.times import FIRST_YEAR, LAST_YEAR, moment, moment_or_none

NOON = datetime(2027, 3, 2, 12, 0, tzinfo=UTC)


@pytest.mark.parametrize(
    "text",
    [
        "2027-03-02 12:00:00.948203 UTC",
        "2027-03-02T12:00Z",
        "2027-03-02 12:00:00,5 GMT",
        "2027-03-02 13:00:00 Europe/Berlin",
        "2027-03-02 04:00:00 -0800",
        "2027-03-02 04:00:00-08:00",
        "2027-03-02 12:00:00",
    ],
)
def test_one_moment_is_read_however_it_is_written(text: str) -> None:
    assert moment(text, UTC).replace(microsecond=0) == NOON


def test_a_moment_keeps_its_microseconds() -> None:
    assert moment("2027-03-02 12:00:00.948203777 UTC").microsecond == 948203
    assert moment("2027-03-02 12:00:00.5 UTC").microsecond == 500_000


def test_a_moment_without_a_zone_is_given_that_of_the_course_or_none() -> None:
    assert moment("2027-03-02 13:00", ZoneInfo("Europe/Berlin")) == NOON
    assert moment("2027-03-02 13:00").tzinfo is None
    assert moment("2027-03-02") == datetime(2027, 3, 2)


@pytest.mark.parametrize(
    "text",
    [
        "0001-01-01 00:00:00 +2359",
        "9999-12-31 23:59:59 -2359",
        "1979-12-31 23:59",
        "2200-01-01 00:00",
        "2027-03-02 12:00 +99:99",
        "2027-03-02 12:00 ../../etc/passwd",
        "2027-03-02 12:00 Nowhere/Land",
        "2027-13-02 12:00",
        "1" * 5000,
        "٢٠٢٧-٠٣-٠٢ ١٢:٠٠",
        "2027-03-02T12:00:00" + "0" * 5000,
        "2027-03-02 12:00 " + "Z" * 5000,
        "\0",
        "",
    ],
)
def test_what_is_no_moment_or_lies_at_the_edge_of_the_calendar_is_refused_in_a_sentence(text: str) -> None:
    with pytest.raises(ValueError, match=r"is no time|lies in the year"):
        moment(text, UTC)
    assert moment_or_none(text) is None


@given(st.text(max_size=60) | st.from_regex(r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(:\d\d)? ?([+-]\d\d:?\d\d|[A-Z]{1,4})?"))
def test_every_moment_that_is_read_can_be_reckoned_with(text: str) -> None:
    found = moment_or_none(text)
    if found is not None:
        assert found.tzinfo is not None
        in_utc = found.astimezone(UTC)
        assert FIRST_YEAR - 1 <= in_utc.year <= LAST_YEAR + 1
        assert (in_utc + timedelta(days=3660)) - in_utc == timedelta(days=3660)

"""Quantities as people write them."""

import pytest

from pgdyno.errors import InvalidInput
from pgdyno.units import (
    format_bytes,
    format_duration_ns,
    format_duration_s,
    format_per_s,
    parse_bytes,
    parse_count,
    parse_duration_s,
    parse_rate_per_s,
)

pytestmark = pytest.mark.unit


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("60", 60),
        ("60s", 60),
        ("1h30m", 5400),
        ("250ms", 0.25),
        ("2min", 120),
        ("1.5 s", 1.5),
        ("0s", 0),
    ],
)
def test_durations(text: str, seconds: float) -> None:
    assert parse_duration_s(text) == pytest.approx(seconds)


@pytest.mark.parametrize("text", ["", "s", "10 parsecs", "-1s", "1m30", "1..5s", "∞"])
def test_not_durations(text: str) -> None:
    with pytest.raises(InvalidInput, match="duration"):
        parse_duration_s(text)


@pytest.mark.parametrize(("text", "rate"), [("5000", 5000), ("5000/s", 5000), ("300/min", 5)])
def test_rates(text: str, rate: float) -> None:
    assert parse_rate_per_s(text) == pytest.approx(rate)


@pytest.mark.parametrize("text", ["0", "-5/s", "5/fortnight", "fast"])
def test_not_rates(text: str) -> None:
    with pytest.raises(InvalidInput, match="rate"):
        parse_rate_per_s(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("2000000", 2_000_000), ("2_000_000", 2_000_000), ("2M", 2_000_000), ("1.5k", 1500)],
)
def test_counts(text: str, count: int) -> None:
    assert parse_count(text) == count


@pytest.mark.parametrize("text", ["1.5", "many", "-3", "1.0005k", ""])
def test_not_counts(text: str) -> None:
    with pytest.raises(InvalidInput, match="whole number"):
        parse_count(text)


@pytest.mark.parametrize(
    ("text", "count"),
    [("8kB", 8192), ("512MB", 512 * 2**20), ("2 GB", 2 * 2**30), ("17", 17), ("1G", 2**30)],
)
def test_bytes(text: str, count: int) -> None:
    assert parse_bytes(text) == count


@pytest.mark.parametrize("text", ["", "5 parsecs", "GB", "1XB"])
def test_not_bytes(text: str) -> None:
    with pytest.raises(InvalidInput, match="size"):
        parse_bytes(text)


def test_formats_change_unit_where_people_do() -> None:
    assert [format_duration_ns(ns) for ns in (2_554, 1_093_442, 61e9)] == [
        "2.6 µs",
        "1.093 ms",
        "61.00 s",
    ]
    assert [format_duration_s(s) for s in (0.85, 12.34, 245, 7380)] == [
        "850 ms", "12.3 s", "4 min 05 s", "2 h 03 min",
    ]  # fmt: skip
    assert [format_bytes(b) for b in (8192, 10, 3006 * 2**20)] == ["8.0 kB", "10 bytes", "2.9 GB"]
    assert [format_per_s(r) for r in (14506.3, 0.52, 245_000.4)] == [
        "14 506.3/s",
        "0.5/s",
        "245 000/s",
    ]

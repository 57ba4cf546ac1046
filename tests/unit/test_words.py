"""Workload parameters as long options, wherever they stand."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pgdyno.cli.words import name_parameters
from pgdyno.errors import InvalidInput

pytestmark = pytest.mark.unit
KNOWN = {"--clients", "--reload"}


def test_parameter_before_the_workload() -> None:
    words = ["--users", "5", "userlogin"]
    assert name_parameters(words, KNOWN) == ["--param", "users=5", "userlogin"]


def test_parameter_with_equals_and_dashes() -> None:
    assert name_parameters(["w", "--log-tables=unlogged"], KNOWN) == [
        "w",
        "--param",
        "log_tables=unlogged",
    ]


def test_known_options_stay_as_they_are() -> None:
    words = ["w", "--clients", "4", "--reload", "-c", "9", "--clients=3"]
    assert name_parameters(words, KNOWN) == words


@pytest.mark.parametrize("words", [["w", "--users"], ["w", "--users", "--clients", "4"]])
def test_unknown_option_without_a_value(words: list[str]) -> None:
    with pytest.raises(InvalidInput, match="--users is not known"):
        name_parameters(words, KNOWN)


@given(st.lists(st.text(max_size=8), max_size=6))
def test_words_after_two_dashes_are_never_touched(words: list[str]) -> None:
    assert name_parameters(["--", *words], KNOWN) == ["--", *words]

"""An experiment that is killed at five moments, one after the other, and resumed each time."""

from __future__ import annotations

import pytest

from tests.pg.commands import Place
from tests.pg.experiments import PAIR, TWICE, kill_and_resume

pytestmark = pytest.mark.slow


@pytest.mark.timeout(600)
def test_killed_at_five_moments_it_resumes(place: Place) -> None:
    moments = (
        ("load:", 1),
        ("reset: bringing", 1),  # The first copy is being made.
        ("measure:", 2),  # One trial has been completed; this is the second.
        ("check: checking the data after", 1),
        ("reset: stopping the server\n", 1),
    )
    trials = kill_and_resume(place, TWICE + 'reset = "copy"\n' + PAIR, moments)
    completed = [trial for trial in trials if trial.outcome == "completed"]
    assert len(completed) == 4
    assert len(trials) - len(completed) == 4, "a trial that was only to stop its server had ended"

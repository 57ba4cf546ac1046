"""Run folders: found by a few letters, readable when half of them is missing."""

from pathlib import Path

import pytest

from pgdyno.errors import InvalidInput, PgdynoError
from pgdyno.experiment.store import Run, find_run, list_runs, new_run, remove_run
from pgdyno.model import Experiment, LoadChoice, SystemChoice, Trial, Variant, WorkloadChoice

pytestmark = pytest.mark.unit


WHEN = "2026-01-02T03:04:05+00:00"


def make_run(output: Path, *, ident: str = "abc123", created: str = WHEN) -> Run:
    variant = Variant(
        name="user/login",
        workload=WorkloadChoice(name="userlogin", parameters={"users": 5, "x": True}),
        system=SystemChoice(settings={"shared_buffers": "1GB"}),
        load=LoadChoice(seed=2**63 - 1),
    )
    return new_run(
        Experiment(
            id=ident, name="log in", created=created, pgdyno_version="0", variants=(variant,)
        ),
        output,
    )


def test_an_experiment_comes_back_as_it_was(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    assert run.folder.name == "20260102T030405Z-log-in-abc123"
    variant = run.experiment.variants[0]
    assert variant.workload.parameters == {"users": 5, "x": True} and variant.load.seed == 2**63 - 1


def test_a_trial_without_results_opens(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    stored = run.new_trial(Trial(number=1, variant="user/login", began=WHEN))
    assert stored.folder.name == "001-user-login"
    assert run.trials[0].trial.outcome is None
    assert stored.summary is None and stored.intervals() == [] and stored.checks == ()


def test_a_line_cut_off_by_a_kill_is_left_out(tmp_path: Path) -> None:
    stored = make_run(tmp_path).new_trial(Trial(number=1, variant="a", began=WHEN))
    (stored.folder / "observations").mkdir()
    (stored.folder / "observations" / "x.jsonl").write_text('{"a":1}\n{"a":2}\n{"a"')
    table = stored.observations("x")
    assert stored.observation_names() == ("x",)
    assert table is not None and table.column("a").to_pylist() == [1, 2]


def test_runs_are_found_by_id_tag_folder_and_last(tmp_path: Path) -> None:
    first = make_run(tmp_path)
    second = make_run(tmp_path, ident="abd999", created="2026-01-03T00:00:00+00:00")
    second.set_tags(("before-upgrade",))
    assert find_run("abc", tmp_path) == first
    assert [find_run(word, tmp_path) for word in ("last", "before-upgrade", "abd999")] == [
        second
    ] * 3
    assert find_run(str(first.folder), tmp_path).folder == first.folder
    with pytest.raises(InvalidInput, match="names 2 runs"):
        find_run("ab", tmp_path)
    with pytest.raises(InvalidInput, match="no run 'abx12'") as caught:
        find_run("abx12", tmp_path)
    assert "abc123" in (caught.value.hint or "")
    remove_run(first)
    assert list_runs(tmp_path) == [second]


def test_newer_and_damaged_files_are_told_not_thrown(tmp_path: Path) -> None:
    run = make_run(tmp_path)
    stored = run.new_trial(Trial(number=1, variant="a", began=WHEN))
    path = stored.folder / "trial.json"
    path.write_text('{"version": 2}')
    with pytest.raises(PgdynoError, match="format version 2"):
        _ = stored.trial
    path.write_text('{"version": 1, "number": "x"')
    with pytest.raises(PgdynoError, match="is not JSON"):
        _ = stored.trial
    path.write_text('{"version": 1, "number": "x"}')
    with pytest.raises(PgdynoError) as caught:
        _ = stored.trial
    assert len(str(caught.value).splitlines()) >= 3

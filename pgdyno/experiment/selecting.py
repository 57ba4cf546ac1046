"""What a person names on a command line as trials: runs, variants of runs, trial folders, files.

| word | what it stands for |
|---|---|
| `RUN` | all trials of a run with one variant: folder, beginning of its id, tag, or `last` |
| `RUN:VARIANT` | the trials of one variant of an experiment |
| a trial's folder | that trial |
| a file | every report in it, or a log, of pgbench or sysbench |
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno.errors import InvalidInput, PgdynoError, Problems, nearest_hint
from pgdyno.experiment.comparability import Purpose
from pgdyno.experiment.comparing import Asked, Comparison, compare
from pgdyno.experiment.readings import Reading, Side
from pgdyno.experiment.store import Run, StoredTrial, find_run
from pgdyno.experiment.trial_readings import read_trial, sides_of
from pgdyno.foreign.files import read_files
from pgdyno.model import Experiment


def compare_experiment(run: Run, *, even_so: bool) -> Comparison:
    """The comparison that an experiment was made for, over the trials it has so far.

    A trial that was interrupted is as if it had not begun: the experiment would go on with it.
    """
    experiment = run.experiment
    begun = sides_of(run)
    sides = [_finished(side) for side in begun]
    left_out = [each.label for side in begun for each in side.readings if each.unfinished]
    name = experiment.baseline or experiment.variants[0].name
    baseline = next((side for side in sides if side.name == name), None)
    if baseline is None:
        raise InvalidInput(f"run {run.id} has no variant '{name}' to compare with")
    others = [side for side in sides if side is not baseline]
    asked = Asked(
        question=experiment.question,
        responses=experiment.responses,
        purpose=purpose_of(experiment),
        paired=True,
        again=second_copy(experiment, name),
        stopping=experiment.stopping,
        even_so=even_so,
    )
    found = compare(baseline, others, asked)
    if not left_out:
        return found
    words = f"left out, since they did not come to their end: {', '.join(left_out)}"
    return replace(found, remarks=(words, *found.remarks))


def _finished(side: Side) -> Side:
    return replace(side, readings=tuple(each for each in side.readings if not each.unfinished))


def purpose_of(experiment: Experiment) -> Purpose:
    """What an experiment varies on purpose."""
    named = {factor.name for factor in experiment.factors if len(factor.levels) > 1}
    named |= {name for variant in experiment.variants for name in variant.levels}
    matters = min((each.matters for each in experiment.responses), default=0.02)
    return Purpose(factors=frozenset(named), one_experiment=True, matters=matters)


def second_copy(experiment: Experiment, baseline: str) -> str | None:
    """The variant of an A/A experiment that is the baseline once more; None where there is none."""
    copies = (each.name for each in experiment.variants if each.copy_of == baseline)
    return next(copies, None)


def compare_words(
    before: Sequence[str], after: Sequence[str], output: Path, asked: Asked
) -> Comparison:
    """Compare what stands after `--` with what stands before it.

    Trials of one experiment are compared within its blocks and by its purpose; others as two
    groups, and then nobody has said what was varied. All words that name nothing are told at once.
    """
    problems: list[str] = []
    sides = [_side(words, output, problems) for words in (before, after)]
    if problems:
        raise Problems(problems, hint="RUN, RUN:VARIANT, a trial's folder, or a file")
    for side in sides:
        _insist_on_single(side)
    _insist_on_different(*sides)
    one, other = _distinct(*sides)
    runs = {_run_of(each) for each in (*one.readings, *other.readings)}
    run = runs.pop() if len(runs) == 1 else None
    if run is not None:
        purpose = replace(purpose_of(run.experiment), matters=asked.purpose.matters)
        return compare(one, [other], replace(asked, paired=True, purpose=purpose))
    return compare(one, [other], replace(asked, paired=False))


def _insist_on_single(side: Side) -> None:
    """A trial that is counted twice would agree with itself."""
    counts = Counter(map(_source, side.readings))
    twice = [each.label for each in side.readings if counts[_source(each)] > 1]
    if twice:
        raise InvalidInput(
            f"named more than once on one side: {', '.join(dict.fromkeys(twice))}",
            hint="one trial counts once",
        )


def _insist_on_different(one: Side, other: Side) -> None:
    """A trial on both sides would make them alike by itself."""
    both = set(map(_source, one.readings)) & set(map(_source, other.readings))
    if both:
        names = ", ".join(each.label for each in one.readings if _source(each) in both)
        raise InvalidInput(
            f"on both sides: {names}", hint="a side must not be compared with itself"
        )


def _source(reading: Reading) -> Path:
    """Where a trial came from, however it was named."""
    return Path(reading.source).absolute()


def _run_of(reading: Reading) -> Run | None:
    """The run of a stored trial; None for a file."""
    folder = Path(reading.source).absolute().parent.parent
    return None if reading.run is None else Run(folder=folder)


def _side(words: Sequence[str], output: Path, problems: list[str]) -> Side:
    """All trials that the words of one side name; what names nothing is added to `problems`."""
    readings: list[Reading] = []
    files = [Path(word) for word in words if Path(word).is_file()]
    try:
        readings.extend(read_files(files))
    except PgdynoError as error:
        problems.append(_one_line(error))
    for word in words:
        if Path(word) in files:
            continue
        try:
            readings.extend(_stored(word, output))
        except PgdynoError as error:
            problems.append(_one_line(error))
    names = dict.fromkeys(each.variant or Path(each.source).name for each in readings)
    return Side(name=" + ".join(names) or " ".join(words), readings=tuple(readings))


def _one_line(error: PgdynoError) -> str:
    return error.message if error.hint is None else f"{error.message}; {error.hint}"


def _stored(word: str, output: Path) -> tuple[Reading, ...]:
    """The trials of a run, of one of its variants, or one by its folder."""
    folder = Path(word)
    if (folder / "trial.json").exists():
        run = Run(folder=folder.absolute().parent.parent)
        return (read_trial(StoredTrial(folder=folder.absolute()), run),)
    reference, colon, variant = word.partition(":")
    if colon and not folder.exists():
        sides = sides_of(find_run(reference, output))
        found = [side for side in sides if side.name == variant]
        if not found:
            known = [side.name for side in sides]
            raise InvalidInput(
                f"run '{reference}' has no variant '{variant}'", hint=nearest_hint(variant, known)
            )
        return _some(found[0], word)
    if folder.is_dir() and not (folder / "experiment.toml").exists():
        raise InvalidInput(f"{word} is a folder, and neither a run nor a trial")
    sides = sides_of(find_run(word, output))
    if len(sides) > 1:
        names = ", ".join(f"{word}:{side.name}" for side in sides)
        raise InvalidInput(f"run '{word}' has {len(sides)} variants; say which: {names}")
    return _some(sides[0], word)


def _some(side: Side, word: str) -> tuple[Reading, ...]:
    if not side.readings:
        raise InvalidInput(f"'{word}' has no trial")
    return side.readings


def _distinct(one: Side, other: Side) -> tuple[Side, Side]:
    """The sides with names that tell them apart."""
    if one.name != other.name:
        return one, other
    runs = [
        "+".join(dict.fromkeys(each.run or "" for each in side.readings)) for side in (one, other)
    ]
    if runs[0] != runs[1] and all(runs):
        return (
            replace(one, name=f"{one.name} ({runs[0]})"),
            replace(other, name=f"{other.name} ({runs[1]})"),
        )
    return replace(one, name=f"{one.name} (first)"), replace(other, name=f"{other.name} (second)")

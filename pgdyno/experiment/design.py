"""From a definition to the variants that are to run: combinations, expressions, workloads, names.

Every problem of the file is found before anything is told: levels that cannot be, variants that are
the same, a baseline that does not exist, parameters out of their range. Nothing is started and no
server is asked; whether a setting exists is the server's own to say, before the first trial.
"""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Final

from pgdyno.errors import InvalidInput, PgdynoError, nearest_hint
from pgdyno.experiment.criteria import responses_of, stopping_of
from pgdyno.experiment.definition import Definition, Given, flat_words
from pgdyno.experiment.factors import conflicts, in_order, short_name
from pgdyno.experiment.levels import Level, number_of, text_of
from pgdyno.experiment.likeness import likeness
from pgdyno.experiment.system_file import with_word
from pgdyno.experiment.toml_lines import KeyPath
from pgdyno.expressions import ExpressionError, Value
from pgdyno.model import (
    Experiment,
    Factor,
    HostFacts,
    LoadChoice,
    ResetMethod,
    Response,
    Stopping,
    SystemChoice,
    Variant,
    WorkloadChoice,
)
from pgdyno.servers.remote import parse_dsn
from pgdyno.units import parse_bytes, parse_count, parse_duration_s
from pgdyno.workloads.definition import Parameter, Workload
from pgdyno.workloads.resolving import resolve

VARIANTS_MAX: Final = 500
DEFAULT_SEED: Final = 1
_PLAIN: Final = Variant(
    name="plain",
    workload=WorkloadChoice(name=""),
    system=SystemChoice(),
    load=LoadChoice(seed=DEFAULT_SEED),
)
_NAMED_IN_PROBLEM = re.compile(r"(parameter|transaction type|weight of) '(\w+)'")

Find = Callable[[str], Workload]


@dataclass(frozen=True, slots=True, kw_only=True)
class Design:
    """What a definition means. `workloads` holds each variant's by the variant's name.

    `aa` None: where no noise is known of this machine.
    """

    question: str | None
    factors: tuple[Factor, ...]
    variants: tuple[Variant, ...]
    workloads: Mapping[str, Workload]
    baseline: str
    responses: tuple[Response, ...]
    stopping: Stopping
    aa: bool | None
    order_seed: int
    reset: ResetMethod


@dataclass(frozen=True, slots=True, kw_only=True)
class Occasion:
    """What makes one experiment of a design: its name, when, by which pgdyno, and what is known.

    `noise_known`: whether an A/A comparison has been made on this machine.
    """

    id: str
    name: str
    created: str
    pgdyno_version: str
    noise_known: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class _Combination:
    """A variant to be: its levels, and where it stands in the file. `name` None: by its levels."""

    name: str | None
    words: Mapping[str, Given]
    path: KeyPath

    @property
    def label(self) -> str:
        """Its own name, or one made of its levels."""
        return self.name or name_of({n: text_of(g.level) for n, g in self.words.items()})


def host_names(facts: HostFacts) -> dict[str, Value]:
    """What expressions may use: facts of the host."""
    return {
        "cpus": facts.cpus,
        "memory_bytes": facts.memory_bytes,
        "memory_mb": facts.memory_bytes // 2**20,
    }


def name_of(levels: Mapping[str, str]) -> str:
    """A variant's name from its levels.

    >>> name_of({"set:synchronous_commit": "off", "clients": "16"})
    'synchronous_commit=off, clients=16'
    """
    return ", ".join(f"{short_name(name)}={level}" for name, level in levels.items()) or "all"


def again(variant: Variant) -> Variant:
    """A second copy of a variant, which differs by chance alone: what an A/A comparison needs."""
    return variant.model_copy(update={"name": f"{variant.name} (again)", "copy_of": variant.name})


def design(definition: Definition, names: Mapping[str, Value], find: Find) -> Design:
    """What a definition means. `find` looks a workload up, `names` are `host_names`.

    Raises `Problems` with every line of the file that is wrong.
    """
    work = _Work(definition=definition, names=names, find=find)
    combinations = work.combinations()
    variants = [work.variant(each) for each in combinations]
    if not definition.is_wrong("factors", "variants"):
        work.tell_twins(combinations, variants)
        work.tell_baseline(combinations)
    responses, wrong_responses = responses_of(definition)
    stopping, wrong_stopping = stopping_of(definition)
    if stopping.policy == "precision" and len(combinations) == 1 and not definition.file.aa:
        text = "precision needs something to compare: a second variant, or aa = true"
        work.problems.append((("precision",), text))
    definition.raise_problems([*work.problems, *wrong_responses, *wrong_stopping])
    made = tuple(variant for variant in variants if variant is not None)
    file = definition.file
    return Design(
        question=file.question,
        factors=work.factors(combinations),
        variants=made,
        workloads=work.workloads,
        baseline=work.fitting(combinations)[0],
        responses=responses,
        stopping=stopping,
        aa=file.aa,
        order_seed=file.order_seed,
        reset=file.reset,
    )


def experiment_of(design: Design, occasion: Occasion) -> tuple[Experiment, dict[str, Workload]]:
    """The experiment that is to run, with the workload of each of its variants.

    With `aa` the baseline gets a copy that runs in every block like any other variant. Where the
    file leaves it open, there is one when something is compared and no noise is known.
    """
    compared = len(design.variants) > 1 and bool(design.responses)
    aa = compared and not occasion.noise_known if design.aa is None else design.aa
    variants, workloads = design.variants, dict(design.workloads)
    if aa:
        copy = again(next(each for each in variants if each.name == design.baseline))
        variants = (*variants, copy)
        workloads[copy.name] = workloads[design.baseline]
    experiment = Experiment(
        id=occasion.id,
        name=occasion.name,
        question=design.question,
        created=occasion.created,
        pgdyno_version=occasion.pgdyno_version,
        variants=variants,
        baseline=design.baseline,
        factors=design.factors,
        responses=design.responses,
        stopping=design.stopping,
        aa=aa,
        reset=design.reset,
        order_seed=design.order_seed,
    )
    return experiment, workloads


@dataclass(slots=True, kw_only=True)
class _Work:
    """A design under way, with the problems found so far as (place, text)."""

    definition: Definition
    names: Mapping[str, Value]
    find: Find
    problems: list[tuple[KeyPath, str]] = field(default_factory=list)
    workloads: dict[str, Workload] = field(default_factory=dict)

    def combinations(self) -> list[_Combination]:
        """Every combination of the factors' levels, or the chosen ones, or the only one."""
        file, factors = self.definition.file, self.definition.factors()
        if factors and file.variants:
            self.problems.append((("variants",), "give either factors or variants, not both"))
        if file.variants:
            chosen = [
                _Combination(
                    name=each.name,
                    words=self.definition.words("variants", number),
                    path=("variants", number),
                )
                for number, each in enumerate(file.variants)
            ]
            self._tell_same_names(chosen)
            return chosen
        if (count := math.prod(len(levels) for levels in factors.values())) > VARIANTS_MAX:
            text = f"the factors make {count} variants, more than {VARIANTS_MAX}"
            self.problems.append((("factors",), text))
            return []
        return [
            _Combination(
                name=None, words=dict(zip(factors, levels, strict=True)), path=("factors",)
            )
            for levels in itertools.product(*factors.values())
        ]

    def variant(self, combination: _Combination) -> Variant | None:
        """One variant with its workload's parameters; None where something is wrong with it."""
        words = self.definition.words() | dict(combination.words)
        before = len(self.problems)
        variant = _PLAIN.model_copy(
            update={
                "name": combination.label,
                "levels": {name: text_of(g.level) for name, g in combination.words.items()},
            }
        )
        for name in in_order(words):
            variant = self._with(variant, name, words[name])
        if variant.system.dsn is not None:
            self._check_dsn(variant.system.dsn, words["dsn"].path)
        for text in conflicts(variant):
            self.problems.append((combination.path, f"variant '{variant.name}': {text}"))
        if not variant.workload.name:
            if "workload" not in words:
                self.problems.append(((), 'there is no workload; for example workload = "tpcb"'))
            return None
        found = self._resolved(variant, words)
        return None if len(self.problems) > before else found

    def tell_twins(self, combinations: list[_Combination], variants: list[Variant | None]) -> None:
        """Two variants that would run the same thing cannot tell anything apart."""
        seen: dict[str, str] = {}
        for combination, variant in zip(combinations, variants, strict=True):
            if variant is None:
                continue
            same = likeness(variant)
            if same in seen:
                text = (
                    f"variants '{seen[same]}' and '{variant.name}' are the same; "
                    "to tell noise, write aa = true"
                )
                self.problems.append((combination.path, text))
            seen.setdefault(same, variant.name)

    def fitting(self, combinations: list[_Combination]) -> list[str]:
        """The names of the variants that can be meant as the baseline; the first by default."""
        asked = self.definition.file.baseline
        labels = [each.label for each in combinations]
        if asked is None:
            return labels[:1]
        if isinstance(asked, str):
            return [asked] if asked in labels else []
        wanted = {n: text_of(g.level) for n, g in flat_words(asked, ("baseline",))}
        return [each.label for each in combinations if _has(each, wanted)]

    def tell_baseline(self, combinations: list[_Combination]) -> None:
        """The baseline must be one variant."""
        asked, found = self.definition.file.baseline, self.fitting(combinations)
        if len(found) == 1 or not combinations:
            return
        near = nearest_hint(
            asked if isinstance(asked, str) else "", {c.label for c in combinations}
        )
        fits = "no variant" if not found else f"{len(found)} variants"
        self.problems.append((("baseline",), f"the baseline names {fits}; {near}"))

    def factors(self, combinations: list[_Combination]) -> tuple[Factor, ...]:
        """The factors; of chosen combinations every word that one of them names."""
        levels: dict[str, dict[str, None]] = {}
        for combination in combinations:
            for name, given in combination.words.items():
                levels.setdefault(name, {})[text_of(given.level)] = None
        return tuple(Factor(name=name, levels=tuple(each)) for name, each in levels.items())

    def _tell_same_names(self, combinations: list[_Combination]) -> None:
        labels = [each.label for each in combinations]
        for number, each in enumerate(combinations):
            if each.label in labels[:number]:
                self.problems.append((each.path, f"there are two variants '{each.label}'"))

    def _with(self, variant: Variant, name: str, given: Given) -> Variant:
        try:
            folder = self.definition.path.parent
            return with_word(variant, name, given.level, self.names, folder=folder)
        except PgdynoError as error:
            self.problems += [(given.path, line) for line in _lines(error)]
            return variant

    def _check_dsn(self, dsn: str, place: KeyPath) -> None:
        try:
            parse_dsn(dsn)
        except InvalidInput as error:
            self.problems.append((place, _one_line(error)))

    def _resolved(self, variant: Variant, words: Mapping[str, Given]) -> Variant | None:
        """The variant with its workload found and every parameter written out."""
        place = words["workload"].path
        try:
            workload = self.find(variant.workload.name)
        except PgdynoError as error:
            self.problems += [(place, line) for line in _lines(error)]
            return None
        choice = variant.workload
        names = {**self.names, "clients": variant.load.clients}
        given = {}
        for name, level in choice.parameters.items():
            try:
                given[name] = _parameter_text(workload.parameters.get(name), level, names)
            except InvalidInput as error:
                where = words[f"param:{name}"].path
                self.problems.append((where, f"parameter '{name}': {_one_line(error)}"))
        try:
            resolved = resolve(workload, given, weights=choice.weights)
        except PgdynoError as error:
            self.problems += [(_place_of(line, words, place), line) for line in _lines(error)]
            self._tell_weights(workload, variant, words)
            return None
        self.workloads[variant.name] = workload
        # The defaults are written out, so that a variant that says one and one that does not are
        # seen to be the same.
        full = choice.model_copy(update={"parameters": dict(resolved.parameters)})
        return variant.model_copy(update={"workload": full})

    def _tell_weights(
        self, workload: Workload, variant: Variant, words: Mapping[str, Given]
    ) -> None:
        """What is wrong with a mix, also where parameters are wrong: tried with the defaults."""
        if not variant.workload.weights:
            return
        try:
            resolve(workload, {}, weights=variant.workload.weights)
        except PgdynoError as error:
            place = words["workload"].path
            self.problems += [(_place_of(line, words, place), line) for line in _lines(error)]


def _parameter_text(parameter: Parameter | None, level: Level, names: Mapping[str, Value]) -> str:
    """A parameter as `resolve` reads it; where it is a number, an expression is computed."""
    if parameter is None or parameter.type not in ("integer", "number"):
        return text_of(level)
    readers = {"bytes": parse_bytes, "s": parse_duration_s}
    try:
        number = number_of(level, names, readers.get(parameter.unit or "", parse_count))
    except ExpressionError:
        raise
    except InvalidInput:
        return text_of(level)  # Neither a quantity nor an expression: `resolve` says what it wants.
    return str(int(number)) if math.isfinite(number) and number == int(number) else str(number)


def _place_of(line: str, words: Mapping[str, Given], otherwise: KeyPath) -> KeyPath:
    """Where the parameter or weight stands that a problem is about."""
    match = _NAMED_IN_PROBLEM.search(line)
    if match is None:
        return otherwise
    family = "param" if match[1] == "parameter" else "mix"
    given = words.get(f"{family}:{match[2]}")
    return otherwise if given is None else given.path


def _has(combination: _Combination, wanted: Mapping[str, str]) -> bool:
    own = {name: text_of(given.level) for name, given in combination.words.items()}
    return all(own.get(name) == level for name, level in wanted.items())


def _lines(error: PgdynoError) -> Iterator[str]:
    """A problem's lines; a hint goes with the only one."""
    lines = error.message.splitlines()
    return iter([_one_line(error)] if len(lines) == 1 else lines)


def _one_line(error: PgdynoError) -> str:
    return error.message if error.hint is None else f"{error.message}; {error.hint}"

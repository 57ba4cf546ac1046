"""`pgdyno ab WORKLOAD --a … --b …`: an experiment of two variants, from nothing to a verdict."""

from __future__ import annotations

import secrets
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import click

from pgdyno import __version__
from pgdyno.calibration.noise import latest_noise, machine_of
from pgdyno.cli.execute import Execution, execute
from pgdyno.cli.options import COUNT, DURATION, SHARE, json_option, output_option
from pgdyno.cli.parameters import WorkloadCommand
from pgdyno.cli.trial_options import trial_options, variant_of
from pgdyno.cli.verdicts import metric_option, responses_of
from pgdyno.errors import InvalidInput
from pgdyno.experiment.criteria import (
    BUDGET_REPLICATES,
    DEFAULT_MAX_REPLICATES,
    DEFAULT_REPLICATES,
)
from pgdyno.experiment.design import Design, Occasion, experiment_of, host_names, name_of
from pgdyno.experiment.earlier import earlier_trials
from pgdyno.experiment.factors import conflicts, in_order, parse_assignment
from pgdyno.experiment.grouping import Grouping
from pgdyno.experiment.likeness import likeness
from pgdyno.experiment.planning import needed_blocks, refusals, trial_time
from pgdyno.experiment.runner import check_experiment
from pgdyno.experiment.store import new_id
from pgdyno.experiment.system_file import with_word
from pgdyno.expressions import Value
from pgdyno.hosts.local import Local
from pgdyno.model import Experiment, Factor, Response, Stopping, Variant
from pgdyno.observers.environment import host_facts
from pgdyno.servers.orphans import state_folder
from pgdyno.stats.power import smallest_p
from pgdyno.workloads import catalog
from pgdyno.workloads.definition import Workload
from pgdyno.workloads.resolving import resolve

_AS_GIVEN = "as given"


@click.command(cls=WorkloadCommand, short_help="Compare two variants of a run.")
@click.argument("workload")
@click.option(
    "--a", "first", multiple=True, metavar="WORD=LEVEL", help="What the baseline has; repeatable."
)
@click.option(
    "--b", "second", multiple=True, metavar="WORD=LEVEL", help="What the variant has; repeatable."
)
@trial_options
@click.option(
    "--replicates",
    type=COUNT,
    help=f"Trials of each side.  [default: {DEFAULT_REPLICATES}]",
)
@click.option("--precision", type=SHARE, help="Until the effect is known to within this, instead.")
@click.option("--max-replicates", type=COUNT, help="With --precision: at most so many trials.")
@click.option("--budget", "budget_s", type=DURATION, help="As many trials as fit, instead.")
@metric_option
@click.option(
    "--aa/--no-aa",
    default=None,
    help="Run the baseline twice in each block, to know the noise.  [default: where none is known]",
)
@click.option("--even-so", is_flag=True, help="Compare what is not comparable, and mark it.")
@click.option("--fail-if-worse", is_flag=True, help="Exit with 3 when a metric of --b is worse.")
@click.option("--name", help="Name of the run; default: the workload's.")
@click.option("--report/--no-report", "with_report", default=True, help="Write report.html.")
@output_option
@json_option
def ab(workload: str, output: Path, **options: Any) -> None:
    """Run WORKLOAD in two variants, in turns, and say whether they differ.

    Everything but --a and --b is as in `pgdyno run`; WORD=LEVEL are the factors of an experiment:
    set:NAME, param:NAME, mix:TYPE, pg, workload, clients, rate, protocol, before, …
    Without any, the baseline runs against itself (A/A) and shows the noise of this machine.

    \b
      pgdyno ab tpcb --a set:synchronous_commit=on --b set:synchronous_commit=off
      pgdyno ab userlogin --a pg=15 --b pg=18 --time 30s --precision 1%
      pgdyno ab tpcb --a clients=16 --b "clients=4 * cpus" --budget 20m
      pgdyno ab tpcb --aa
    """  # noqa: D301  (click reads the escape)
    plain, _ = variant_of(workload, options)
    facts = host_facts(Local())
    names = host_names(facts)
    levels = [_levels(words) for words in (options["first"], options["second"])]
    variants, workloads = _variants(plain, levels, names)
    responses = _judged(options, variants)
    found = Design(
        question=None,
        factors=_factors(levels),
        variants=variants,
        workloads=workloads,
        baseline=variants[0].name,
        responses=responses,
        stopping=_stopping(options),
        aa=True if len(variants) == 1 else options["aa"],
        order_seed=secrets.randbits(31),
        reset="auto",
    )
    known = latest_noise(
        state_folder(), machine_of(facts), workloads[found.baseline].name, responses[0].metric
    )
    occasion = Occasion(
        id=new_id(),
        name=options["name"] or plain.name,
        created=datetime.now(UTC).isoformat(timespec="seconds"),
        pgdyno_version=__version__,
        noise_known=known is not None,
    )
    experiment, of_variants = experiment_of(found, occasion)
    _insist_on_enough(experiment, of_variants, output)
    execute(experiment, of_variants, _execution(options, output))


def _insist_on_enough(
    experiment: Experiment, workloads: Mapping[str, Workload], output: Path
) -> None:
    """Refuse what could not decide, with what could; earlier runs say how long a trial takes."""
    stopping, needed = experiment.stopping, needed_blocks(experiment) or 0
    most = stopping.max_replicates if stopping.policy == "precision" else stopping.replicates
    if stopping.policy != "budget" and (most or 0) < needed:
        option = "--replicates" if stopping.policy == "fixed" else "--max-replicates"
        raise InvalidInput(
            f"{option} {most} cannot decide: p would be {smallest_p(most or 0):.2g} at best",
            hint=f"{option} {needed} can; --metric and --matters say what is judged",
        )
    if stopping.policy == "budget":
        resolved = check_experiment(experiment, workloads, Local())
        stored = earlier_trials(output, experiment.variants)
        times = {
            each.name: trial_time(each, resolved[each.name].expected_bytes, stored[each.name])
            for each in experiment.variants
        }
        grouping = Grouping(workloads=resolved, contexts={})
        for _, text in refusals(experiment, grouping, times):
            raise InvalidInput(text, hint="a longer --budget, or a shorter --time")


def _execution(options: dict[str, Any], output: Path) -> Execution:
    return Execution(
        output=output,
        as_json=options["as_json"],
        with_report=options["with_report"],
        even_so=options["even_so"],
        fail_if_worse=options["fail_if_worse"],
    )


def _levels(words: tuple[str, ...]) -> dict[str, str]:
    """Word → level of one side; each word once."""
    found: dict[str, str] = {}
    for text in words:
        name, level = parse_assignment(text)
        if name in found:
            raise InvalidInput(f"'{name}' is given twice on one side", hint="give one level")
        found[name] = level
    return found


def _variants(
    plain: Variant, levels: list[dict[str, str]], names: Mapping[str, Value]
) -> tuple[tuple[Variant, ...], dict[str, Workload]]:
    """The two variants, or the only one of an A/A, with the workload of each by its name."""
    if not any(levels):
        name = _AS_GIVEN
        only = plain.model_copy(update={"name": name})
        return (only,), {name: catalog.find(plain.workload.name)}
    sides = [_variant(plain, side, names) for side in levels]
    one, other = (each.variant for each in sides)
    if likeness(one) == likeness(other):
        raise InvalidInput(
            "--a and --b are the same", hint="to measure noise, leave both out: pgdyno ab WORKLOAD"
        )
    return (one, other), {each.variant.name: each.workload for each in sides}


@dataclass(frozen=True, slots=True, kw_only=True)
class _Sided:
    """One side: its variant, with the workload it names."""

    variant: Variant
    workload: Workload


def _variant(plain: Variant, levels: dict[str, str], names: Mapping[str, Value]) -> _Sided:
    """The variant of one side, its workload's parameters written out again."""
    variant = plain
    for name in in_order(levels):
        variant = with_word(variant, name, levels[name], names, folder=Path())
    name = name_of(levels) if levels else _AS_GIVEN
    if problems := conflicts(variant):
        raise InvalidInput(f"{name}: {problems[0]}")
    workload = catalog.find(variant.workload.name)
    given = variant.workload.parameters
    if variant.workload.name != plain.workload.name:
        given = {each: value for each, value in given.items() if f"param:{each}" in levels}
    texts = {each: str(value) for each, value in given.items()}
    resolved = resolve(workload, texts, weights=variant.workload.weights)
    choice = variant.workload.model_copy(update={"parameters": dict(resolved.parameters)})
    made = variant.model_copy(update={"name": name, "levels": dict(levels), "workload": choice})
    return _Sided(variant=Variant.model_validate(made.model_dump()), workload=workload)


def _factors(levels: list[dict[str, str]]) -> tuple[Factor, ...]:
    """Every word of either side, with its levels."""
    words = dict.fromkeys(name for side in levels for name in side)
    return tuple(
        Factor(
            name=name,
            levels=tuple(dict.fromkeys(side[name] for side in levels if name in side)),
        )
        for name in words
    )


def _judged(options: dict[str, Any], variants: tuple[Variant, ...]) -> tuple[Response, ...]:
    """What is judged: as asked, or throughput; of an open loop, whose rate is given, p99."""
    loads = [each.load for each in variants]
    is_open = all(each.rate_per_s or each.stages or each.sessions for each in loads)
    return responses_of(options["metrics"] or (("p99_us",) if is_open else ()), options["matters"])


def _stopping(options: dict[str, Any]) -> Stopping:
    """At most one of replicates, precision and budget."""
    ways = [name for name in ("replicates", "precision", "budget_s") if options[name] is not None]
    if len(ways) > 1:
        words = " and ".join("--" + name.removesuffix("_s") for name in ways)
        raise InvalidInput(f"{words} cannot be used together", hint="give one")
    if options["max_replicates"] is not None and options["precision"] is None:
        raise InvalidInput("--max-replicates needs --precision", hint="for example --precision 1%")
    if options["precision"] is not None:
        most = options["max_replicates"] or DEFAULT_MAX_REPLICATES
        return Stopping(policy="precision", precision=options["precision"], max_replicates=most)
    if options["budget_s"] is not None:
        if options["budget_s"] <= 0:
            raise InvalidInput("--budget must be above zero", hint="for example --budget 20m")
        return Stopping(policy="budget", budget_s=options["budget_s"], replicates=BUDGET_REPLICATES)
    if options["replicates"] is not None and options["replicates"] < 1:
        raise InvalidInput("--replicates must be above zero")
    return Stopping(replicates=options["replicates"] or DEFAULT_REPLICATES)

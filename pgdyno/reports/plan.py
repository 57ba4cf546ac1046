"""What an experiment is going to do: variants, trials in order with times, what it can show."""

from __future__ import annotations

from typing import Any

from rich.console import Console
from rich.table import Table

from pgdyno.experiment.planning import ExperimentPlan, PlannedTrial, TrialTime
from pgdyno.experiment.precision import ALPHA, comparisons
from pgdyno.model import Experiment, Variant
from pgdyno.units import format_counted, format_duration_s, format_share


def render_plan(
    experiment: Experiment, plan: ExperimentPlan, detectable: float | None, console: Console
) -> None:
    """Print the plan. `detectable`: the smallest difference it finds, by an earlier noise floor."""
    question = f": {experiment.question}" if experiment.question else ""
    console.print(f"[bold]{experiment.name}[/]{question}")
    console.print()
    console.print(_variants(experiment, plan))
    console.print(_states(plan))
    console.print()
    console.print(_trials(plan))
    console.print()
    console.print(_length(experiment, plan))
    for line in _reach(experiment, plan, detectable):
        console.print(line)


def as_json(
    experiment: Experiment, plan: ExperimentPlan, detectable: float | None
) -> dict[str, Any]:
    """The plan for programs."""
    return {
        "version": 1,
        "name": experiment.name,
        "question": experiment.question,
        "baseline": experiment.baseline,
        "variants": [
            {
                "name": variant.name,
                "levels": variant.levels,
                "copy_of": variant.copy_of,
                "redo": plan.redo[variant.name],
                "first_s": plan.times[variant.name].first_s,
                "again_s": plan.times[variant.name].again_s,
                "earlier_trials": plan.times[variant.name].trials,
            }
            for variant in experiment.variants
        ],
        "loaded_states": plan.groups,
        "trials": [
            {
                "number": trial.number,
                "block": trial.block,
                "variant": trial.variant,
                "redo": trial.redo,
                "loads": trial.loads,
                "begins_s": trial.begins_s,
                "takes_s": trial.takes_s,
            }
            for trial in plan.trials
        ],
        "blocks": plan.blocks,
        "needed_blocks": plan.needed_blocks,
        "least_p": plan.least_p,
        "total_s": plan.total_s,
        "detectable": detectable,
    }


# What must be done again, as a person says it; nothing for what a new session brings anyway.
_REDO_WORDS = {
    "build": "another server",
    "initdb": "a new cluster",
    "load": "other data",
    "restart": "a restart",
    "reload": "a reload",
    "run": "nothing",
}


def _variants(experiment: Experiment, plan: ExperimentPlan) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    table.add_column("variant", overflow="fold")
    table.add_column("needs redone")
    table.add_column("a trial takes", justify="right")
    table.add_column("from", style="dim")
    for variant in experiment.variants:
        time = plan.times[variant.name]
        table.add_row(
            variant.name,
            _difference(experiment, variant, plan),
            format_duration_s(time.again_s),
            _origin(time),
        )
    return table


def _difference(experiment: Experiment, variant: Variant, plan: ExperimentPlan) -> str:
    if variant.name == experiment.baseline:
        return "is the baseline" if len(experiment.variants) > 1 else ""
    if variant.copy_of is not None:
        return "nothing: tells noise (A/A)"
    return _REDO_WORDS[plan.redo[variant.name]]


def _origin(time: TrialTime) -> str:
    return f"{format_counted(time.trials, 'earlier trial')}" if time.trials else "a guess"


def _states(plan: ExperimentPlan) -> str:
    """How often data are loaded, and how long that takes."""
    loads_s = [plan.times[group[0]].first_s - plan.times[group[0]].again_s for group in plan.groups]
    about = f"about {format_duration_s(max(0.0, sum(loads_s)))} in all"
    if len(plan.groups) == 1:
        return f"one loaded state, shared by all trials; loading it takes {about}"
    return f"{len(plan.groups)} loaded states, each loaded once; that takes {about}"


def _trials(plan: ExperimentPlan) -> Table:
    table = Table(box=None, pad_edge=False, header_style="dim")
    for name in ("trial", "block"):
        table.add_column(name, justify="right")
    table.add_column("variant", overflow="fold")
    table.add_column("redo")
    for name in ("begins at", "takes"):
        table.add_column(name, justify="right")
    last = 0
    for trial in plan.trials:
        table.add_row(
            str(trial.number),
            str(trial.block) if trial.block != last else "",
            trial.variant,
            _redo(trial),
            format_duration_s(trial.begins_s) if trial.begins_s else "0 s",
            format_duration_s(trial.takes_s),
        )
        last = trial.block
    return table


def _redo(trial: PlannedTrial) -> str:
    """What must be done again; data that were loaded before are only taken up again."""
    if trial.loads or trial.redo is None:
        return "load" if trial.redo in ("load", "initdb") else "all"
    return "other data" if trial.redo in ("build", "initdb", "load") else trial.redo


def _length(experiment: Experiment, plan: ExperimentPlan) -> str:
    whole = (
        f"{format_counted(len(plan.trials), 'trial')} in {format_counted(plan.blocks, 'block')}, "
        f"about {format_duration_s(plan.total_s)}"
    )
    stopping = experiment.stopping
    if stopping.policy == "precision":
        known = f"± {100 * (stopping.precision or 0.0):g} %"
        return f"at most {whole}; it ends when every effect is known to {known}"
    if stopping.policy == "budget":
        return f"{whole}: what fits into {format_duration_s(stopping.budget_s or 0.0)}"
    return whole


def _reach(experiment: Experiment, plan: ExperimentPlan, detectable: float | None) -> list[str]:
    """What the design can decide, and how small a difference it would find."""
    if plan.needed_blocks is None or plan.least_p is None:
        return ["nothing is compared"]
    asked = comparisons(experiment)
    wanted = f"{ALPHA:g}" + (f" / {asked} comparisons" if asked > 1 else "")
    lines = [
        f"it can decide: the smallest p of {plan.blocks} blocks is {plan.least_p:.2g}, {wanted} is "
        f"wanted ({plan.needed_blocks} blocks would do)"
    ]
    if detectable is not None:
        lines.append(
            f"with the noise found here before it finds a difference of {format_share(detectable)} "
            "in 8 of 10 experiments"
        )
    elif any(variant.copy_of for variant in experiment.variants):
        lines.append("how small a difference it finds: the A/A in each block will tell")
    else:
        lines.append("how small a difference it finds is not known: aa = true would tell")
    return lines

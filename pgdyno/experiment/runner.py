"""The loop: asks the policy what comes next, conducts that trial, stores it, asks again.

The one place that wires everything together is `conduct.py`, one trial at a time; here is only
what comes before the first of them and between them. A trial that fails is written down and the
policy asked; what is killed goes on from its folder, since the policy sees nothing but what is
stored.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from pathlib import Path

from pgdyno.engine import build_plan, check_plan
from pgdyno.errors import InvalidInput, PgdynoError, Problems
from pgdyno.experiment.conduct import Conduct
from pgdyno.experiment.context import Context
from pgdyno.experiment.diary import Diary
from pgdyno.experiment.guard import sole_runner
from pgdyno.experiment.policies import Next, Past, Stop, next_step, past_of, trials_at_most
from pgdyno.experiment.progress import Progress
from pgdyno.experiment.remaining import place_of
from pgdyno.experiment.staging import Staging
from pgdyno.experiment.standing import deciding_metric
from pgdyno.experiment.store import Run, StoredTrial
from pgdyno.experiment.trial_readings import values_of
from pgdyno.hosts.base import Host
from pgdyno.model import Experiment, Trial, Variant
from pgdyno.workloads.definition import ResolvedWorkload, Workload
from pgdyno.workloads.resolving import resolve


def check_experiment(
    experiment: Experiment, workloads: Mapping[str, Workload], host: Host
) -> dict[str, ResolvedWorkload]:
    """Whatever can be refused before anything is made: parameters, scripts, plans.

    Returns every variant's workload resolved. Raises `Problems` with all that is wrong.
    """
    _refuse_steady_stages(experiment)
    resolved = {}
    for variant in experiment.variants:
        workload = _resolved(variant, workloads[variant.name])
        scripts = (workload.transaction_types, workload.variables)
        check_plan(build_plan(variant.name, variant.load, scripts, ("", Path("/"))), host)
        resolved[variant.name] = workload
    return resolved


def run_experiment(
    run: Run, workloads: Mapping[str, ResolvedWorkload], host: Host, progress: Progress
) -> Stop:
    """Run every trial that the policy still asks for; says why there are no more.

    Raises what made the last trial impossible, where the policy does not want another try.
    """
    with sole_runner(run):
        _close_broken_off(run)
        runner = _Runner(run, workloads, host, progress)
        with Staging(run.experiment, workloads, host, progress.notice) as staging:
            return runner.run(staging)


class _Runner:
    """One sitting of an experiment. `earlier`: trials that ran before it."""

    def __init__(
        self,
        run: Run,
        workloads: Mapping[str, ResolvedWorkload],
        host: Host,
        progress: Progress,
    ) -> None:
        self.stored_in = run
        self.experiment = run.experiment
        self.workloads = workloads
        self.host = host
        self.progress = progress
        self.earlier = len(run.trials)
        self.past = [self._past(stored) for stored in run.trials]

    def run(self, staging: Staging) -> Stop:
        """Trial after trial until the policy, the person or a hopeless trial says stop."""
        failure: PgdynoError | None = None
        while True:
            step = next_step(self.experiment, self.past, earlier=self.earlier)
            if isinstance(step, Stop):
                if failure is not None and step.failed:
                    raise failure
                return step
            if failure is not None:
                self.progress.notice(f"trial failed and is tried again: {failure.message}")
            stored = self._begin(step)
            context = Context(
                stored=stored,
                variant=step.variant,
                workload=self.workloads[step.variant.name],
                host=self.host,
                diary=Diary(stored, self.progress),
            )
            failure = _conduct(Conduct(context, staging))
            self.past.append(self._past(stored))
            if self.past[-1].outcome == "interrupted":
                return Stop(reason="interrupted", failed=True)

    def _begin(self, step: Next) -> StoredTrial:
        """Make the trial's folder, and tell where it stands."""
        if trials_at_most(self.experiment) > 1:
            stored = [one.trial for one in self.stored_in.trials]
            sizes = {name: one.expected_bytes for name, one in self.workloads.items()}
            self.progress.trial(place_of(self.experiment, step, self.past, stored, sizes))
        return self.stored_in.new_trial(
            Trial(
                number=step.number,
                variant=step.variant.name,
                replicate=step.replicate,
                block=step.block,
                began=datetime.now(UTC).isoformat(timespec="milliseconds"),
            )
        )

    def _past(self, stored: StoredTrial) -> Past:
        """What the policy is told of a trial; reading its results takes time, so only on demand."""
        looks = self.experiment.stopping.policy == "precision"
        names = (deciding_metric(self.experiment),)
        return past_of(stored.trial, values_of(stored, names) if looks else None)


def _conduct(conduct: Conduct) -> PgdynoError | None:
    """Conduct a trial; the error that ended it, unless no further try could do better."""
    try:
        conduct.run()
    except InvalidInput:
        raise
    except PgdynoError as error:
        return error
    return None


def _close_broken_off(run: Run) -> None:
    """Write down that a trial never ended: whoever ran it was killed. Only its runner may ask."""
    for stored in run.trials:
        trial = stored.trial
        if trial.outcome is None:
            reason = "broken off: pgdyno was killed, or its machine stopped"
            ended = trial.model_copy(update={"outcome": "interrupted", "reason": reason})
            stored.write("trial.json", ended)


def _refuse_steady_stages(experiment: Experiment) -> None:
    """A rate that changes is never steady."""
    unsteady = [one for one in experiment.variants if one.load.steady_warmup and one.load.stages]
    if unsteady:
        raise Problems(
            [
                f"{one.name}: the warm-up of a load with stages has no steady state"
                for one in unsteady
            ],
            hint="give the warm-up a length, such as 10s",
        )


def _resolved(variant: Variant, workload: Workload) -> ResolvedWorkload:
    choice = variant.workload
    given = {name: str(value) for name, value in choice.parameters.items()}
    return resolve(workload, given, weights=choice.weights)

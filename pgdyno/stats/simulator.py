"""Experiments whose truth is known: trial values with the noise of real machines, seeded.

What a method claims can then be counted: how often two identical variants are called different, how
often an interval holds the planted effect, how often an effect is found. Noise is made on the
logarithm of a value and multiplies:

* trials in time follow each other (autocorrelation of order one, AR(1)), as neighbours on the same
  host and a disk's caches make them do;
* the machine drifts over the whole experiment (heat, a filling disk);
* tails are heavier than normal: Student's t with three degrees of freedom, or lognormal, skewed;
* now and then a trial meets a stall (a checkpoint of another server, a stolen CPU).

Each block holds every variant once, in random order, as `experiment.policies` runs them; or one
variant's trials all come before the next one's, as people run them by hand. To try a method of your
own, call `simulate` and judge what it returns; `scorecard` counts how pgdyno's does.

>>> trials = simulate(Noise(sd_log=0.02), {"a": 1.0, "b": 1.03}, blocks=2, seed=1)
>>> {name: sorted(values) for name, values in trials.items()}
{'a': [1, 2], 'b': [1, 2]}
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, Literal

Tails = Literal["normal", "student t3", "lognormal"]
Order = Literal["blocks", "one after the other"]
Trials = dict[str, dict[int, float]]

TYPICAL_VALUE: Final = 1000.0
_LOGNORMAL_SHAPE: Final = 0.8
"""Sigma of the skewed noise before it is scaled: skewness 3.7, kurtosis 31 above the normal's."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Noise:
    """What makes two trials of one variant differ, as a standard deviation of log values and more.

    `drift_log` is the change of the machine from the first trial to the last. A stall hits a share
    of the trials and lowers their value by `stall_log`; neither counts into `sd_log`.
    """

    sd_log: float = 0.02
    tails: Tails = "normal"
    autocorrelation: float = 0.0
    drift_log: float = 0.0
    stall_share: float = 0.0
    stall_log: float = 0.3


NOISES: Final[Mapping[str, Noise]] = {
    "calm": Noise(),
    "heavy tails": Noise(tails="student t3"),
    "skewed": Noise(tails="lognormal"),
    "autocorrelated": Noise(autocorrelation=0.7),
    "drifting": Noise(drift_log=-0.15),
    "stalls": Noise(stall_share=0.05),
    "all at once": Noise(
        tails="student t3", autocorrelation=0.7, drift_log=-0.15, stall_share=0.05
    ),
}
"""The machines on which the method is tried: each nuisance alone, and all of them."""


def simulate(
    noise: Noise, effects: Mapping[str, float], *, blocks: int, seed: int, order: Order = "blocks"
) -> Trials:
    """Variant → block → value. `effects` are the true ratios; blocks count from 1."""
    source = random.Random(seed)
    trials: Trials = {name: {} for name in effects}
    numbers = range(1, blocks + 1)
    if order == "blocks":
        in_time = [(block, name) for block in numbers for name in _shuffled(effects, source)]
    else:
        in_time = [(block, name) for name in effects for block in numbers]
    machine = _machine(noise, len(in_time), source)
    for (block, name), log_value in zip(in_time, machine, strict=True):
        trials[name][block] = TYPICAL_VALUE * effects[name] * math.exp(log_value)
    return trials


def _machine(noise: Noise, trials: int, source: random.Random) -> Iterator[float]:
    """What the machine adds to the logarithm of each trial, in the order of time."""
    rest = math.sqrt(1 - noise.autocorrelation**2)
    state = _draw(noise.tails, source)
    for number in range(trials):
        if number:
            state = noise.autocorrelation * state + rest * _draw(noise.tails, source)
        drift = noise.drift_log * number / max(trials - 1, 1)
        stall = noise.stall_log if source.random() < noise.stall_share else 0.0
        yield noise.sd_log * state + drift - stall


def _draw(tails: Tails, source: random.Random) -> float:
    """One value of mean 0 and standard deviation 1."""
    normal = source.gauss(0, 1)
    if tails == "normal":
        return normal
    if tails == "student t3":
        # Variance of t with three degrees of freedom: 3.
        return normal / math.sqrt(source.gammavariate(1.5, 2) / 3) / math.sqrt(3)
    variance = _LOGNORMAL_SHAPE**2
    mean, spread = math.exp(variance / 2), math.sqrt(math.exp(variance) * math.expm1(variance))
    # Skewed downwards, as throughput is: a server has many ways to be slower than usual.
    return (mean - math.exp(_LOGNORMAL_SHAPE * normal)) / spread


def _shuffled(effects: Mapping[str, float], source: random.Random) -> list[str]:
    names = list(effects)
    source.shuffle(names)
    return names

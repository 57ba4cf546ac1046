"""May these trials be compared at all? Pure: from two sides' readings to what stands against it.

An `Obstacle` of kind "refused" means that a verdict would be about something else than the person
asked; `--even-so` shows it all the same, marked. "warned" is said first and stops nothing.
`docs/comparing.md` has the table of them all.

What a person varied on purpose is no obstacle: the factors of an experiment, and what a factor
brings with it (another server version loads its own data, `synchronous_commit` is a durability
class). It is told nevertheless, and the verdict is marked "not like for like".
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal

from pgdyno.experiment.readings import Circumstances, Side

NEAR_CEILING: Final = 0.8
AGED_DEAD_SHARE: Final = 0.05
AGED_GROWTH: Final = 0.10
AS_GIVEN: Final = "as given"
"""The level of a factor that a variant does not name."""
ERRORS_OF_MATTERS: Final = 0.25

CLASS_SETTINGS: Final = frozenset(
    {"synchronous_commit", "fsync", "full_page_writes", "synchronous_standby_names"}
)
"""Settings whose levels are durability classes: who varies them asks for a comparison of those."""
CLASS_WORDS: Final = frozenset({"standbys", "quorum"})
"""Factors of the same kind that are no settings."""
_PLACES: Final = frozenset({"dsn", "server_cpus", "engine_cpus", "cpu_limit", "memory_limit"})
_OF_INITDB: Final = frozenset({"checksums", "wal_segment_size", "locale", "encoding"})
# What a trial's own documents call the factors that are named otherwise there.
_TOLD_AS: Final = {
    "pg": "server version",
    **dict.fromkeys(("rate", "stages", "sessions", "arrivals", "schedule"), "arrivals"),
    **dict.fromkeys(("think_time", "think_times"), "think time"),
    **dict.fromkeys(("time", "transactions_per_client"), "length"),
    "warmup": "warm-up",
    "max_tries": "tries",
    "statement_timeout": "statement timeout",
}
_SCRIPTS: Final = "scripts and weights"


@dataclass(frozen=True, slots=True, kw_only=True)
class Obstacle:
    """One thing that stands against the comparison. `name` is stable, for programs."""

    kind: Literal["refused", "warned"]
    name: str
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Something that is not the same on both sides: what, and its value on each."""

    what: str
    baseline: str
    variant: str

    @property
    def sentence(self) -> str:
        """`clients: 16 against 64`."""
        return f"{self.what}: {self.baseline} against {self.variant}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Purpose:
    """What was varied on purpose: names of factors (`set:work_mem`, `clients`), and what matters.

    `one_experiment`: trials of both sides were interleaved in one experiment.
    """

    factors: frozenset[str] = frozenset()
    one_experiment: bool = False
    matters: float = 0.02

    def sets(self, names: Iterable[str]) -> bool:
        """Whether one of these server settings was varied."""
        return any(f"set:{name}" in self.factors for name in names)


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparability:
    """Everything that stands against comparing two sides, and all that differs between them."""

    obstacles: tuple[Obstacle, ...]
    differences: tuple[Difference, ...]
    like_for_like: bool

    @property
    def refused(self) -> tuple[Obstacle, ...]:
        """Obstacles that need `--even-so`."""
        return tuple(each for each in self.obstacles if each.kind == "refused")

    @property
    def warned(self) -> tuple[Obstacle, ...]:
        """Obstacles that are said first and stop nothing."""
        return tuple(each for each in self.obstacles if each.kind == "warned")


def judge_comparability(baseline: Side, variant: Side, purpose: Purpose) -> Comparability:
    """What stands against comparing `variant` with `baseline`."""
    found = tuple(obstacle for rule in _RULES for obstacle in rule(baseline, variant, purpose))
    marked = any(each.kind == "refused" or each.name == "durability" for each in found)
    return Comparability(
        obstacles=tuple(dict.fromkeys(found)),
        differences=tuple(_all_differences(baseline, variant, purpose)),
        like_for_like=not marked,
    )


def differences(baseline: Side, variant: Side) -> Iterator[Difference]:
    """Everything written down about both sides that is not the same, largest things first."""
    for what, read in _ASPECTS:
        one, other = _words(baseline, read), _words(variant, read)
        if one and other and one != other:
            yield Difference(what=what, baseline=one, variant=other)
    load, other_load = _merged(baseline, _load) or {}, _merged(variant, _load) or {}
    for name in sorted(load.keys() & other_load.keys()):
        if load[name] != other_load[name]:
            yield Difference(what=name, baseline=load[name], variant=other_load[name])
    settings, other_settings = _merged(baseline, _settings), _merged(variant, _settings)
    if settings is None or other_settings is None:
        return
    for name in sorted(settings.keys() | other_settings.keys()):
        one, other = settings.get(name, "default"), other_settings.get(name, "default")
        if one != other:
            yield Difference(what=name, baseline=one, variant=other)


def _all_differences(baseline: Side, variant: Side, purpose: Purpose) -> list[Difference]:
    """What was measured to differ, and factors that no measured difference tells of."""
    found = list(differences(baseline, variant))
    if not purpose.one_experiment:
        return found
    told = {each.what for each in found}
    one, other = _merged(baseline, _levels) or {}, _merged(variant, _levels) or {}
    varied = [
        Difference(
            what=name.removeprefix("set:").removeprefix("param:"),
            baseline=one.get(name, AS_GIVEN),
            variant=other.get(name, AS_GIVEN),
        )
        for name in {**one, **other}
        if one.get(name) != other.get(name) and _TOLD_AS.get(name) not in told
    ]
    if any(each.what.startswith("mix:") for each in varied):
        found = [each for each in found if each.what != _SCRIPTS]
    return found + [each for each in varied if each.what not in told]


def _incomplete(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    for each in (*baseline.readings, *variant.readings):
        if not each.complete:
            yield _refused("incomplete", f"{each.label} ({each.variant}) {each.reason}")


def _broken(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    for each in (*baseline.readings, *variant.readings):
        if each.broken:
            names = ", ".join(each.broken)
            yield _refused(
                "checks", f"the data of {each.label} ({each.variant}) are wrong: {names}"
            )


def _tools(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    def tool(of: Circumstances) -> str | None:
        return of.tool

    def version(of: Circumstances) -> str | None:
        return f"{of.tool} {of.tool_version}" if of.tool_version else None

    if sentence := _unlike(baseline, variant, tool):
        yield _refused("tool", f"different load generators: {sentence}")
    elif sentence := _unlike(baseline, variant, version):
        yield _refused("engine", f"different versions of the load generator: {sentence}")


def _durability(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    sentence = _unlike(baseline, variant, lambda of: of.durability if of.writes else None)
    if sentence is None:
        yield from _promises(baseline, variant, purpose)
    elif purpose.one_experiment and (purpose.sets(CLASS_SETTINGS) or purpose.factors & CLASS_WORDS):
        yield _warned(
            "durability",
            f"not like for like, as you asked: durability class {sentence}; part of the difference "
            "is what a crash may cost",
        )
    else:
        yield _refused("durability", f"different durability classes: {sentence}")


def _promises(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    """`D?` is a provider's promise, not derived: two of them need not be the same promise."""
    labels = {_words(side, lambda of: of.durability) for side in (baseline, variant)}
    if not any("D?" in label for label in labels):
        return
    kind = _warned if purpose.one_experiment else _refused
    yield kind("provider", "durability is the provider's promise (D?) and was not derived")


def _data(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    one, other = _merged(baseline, _data_words), _merged(variant, _data_words)
    if one is None or other is None:
        return
    unlike = [
        name for name in sorted(one.keys() | other.keys()) if one.get(name) != other.get(name)
    ]
    asked = {"workload"} if "workload" in purpose.factors else set()
    asked |= {name.partition(":")[2] for name in purpose.factors if name.startswith("param:")}
    if asked:
        # Another workload has its own parameters and data version.
        unlike = [] if "workload" in asked else [name for name in unlike if name not in asked]
    if purpose.factors & {"pg"}:
        unlike = [name for name in unlike if name not in ("block size", "WAL block size")]
    if purpose.factors & _OF_INITDB:
        unlike = [name for name in unlike if name != "initdb options"]
    if unlike:
        words = "; ".join(f"{name}: {one.get(name)} against {other.get(name)}" for name in unlike)
        yield _refused("state", f"different data: {words}")


def _errors(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    one, other = _lost(baseline), _lost(variant)
    if one is None or other is None:
        return
    limit = ERRORS_OF_MATTERS * purpose.matters
    if abs(one - other) > limit:
        yield _refused(
            "errors",
            f"different error rates: {_percent(one)} against {_percent(other)} of the transactions "
            f"did not commit, and {_percent(limit)} is a quarter of the difference that matters",
        )
    elif max(one, other) > 0.01:
        yield _warned(
            "errors", f"{_percent(one)} and {_percent(other)} of the transactions did not commit"
        )


def _ages(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    """An aged database against a fresh one; trials of one experiment take turns and share it."""
    kind = _warned if purpose.one_experiment else _refused
    used = [_mean(side, lambda of: of.age.measurements) for side in (baseline, variant)]
    if None not in used and (used[0] == 0) != (used[1] == 0):
        yield kind(
            "age",
            "an aged state against a fresh one: "
            f"{used[0]:.1f} against {used[1]:.1f} earlier measurements on the same data",
        )
    dead = [_mean(side, lambda of: of.age.dead_share) for side in (baseline, variant)]
    if dead[0] is not None and dead[1] is not None and abs(dead[0] - dead[1]) > AGED_DEAD_SHARE:
        yield kind(
            "dead rows",
            f"dead rows at the beginning: {_percent(dead[0])} against {_percent(dead[1])}",
        )
    size = [_mean(side, lambda of: of.age.bytes) for side in (baseline, variant)]
    same_data = _merged(baseline, _data_words) == _merged(variant, _data_words)
    if size[0] and size[1] and same_data and abs(size[0] / size[1] - 1) > AGED_GROWTH:
        yield kind(
            "bloat",
            f"the same data take {size[0] / size[1] - 1:+.0%} of the space on the other side",
        )


def _builds(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    one, other = _builds_of(baseline), _builds_of(variant)
    if one == other:
        for words in one:
            yield _warned("build", f"the server's build is not made for measuring: {words}")
        return
    for side, alone in ((baseline, one - other), (variant, other - one)):
        for words in sorted(alone):
            yield _refused("build", f"only the server of {side.name}: {words}")


def _hosts(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    if not purpose.factors & _PLACES and (
        sentence := _unlike(baseline, variant, lambda of: of.host)
    ):
        yield _refused("host", f"different hosts: {sentence}")
    elif sentence := _unlike(baseline, variant, lambda of: of.kernel):
        yield _warned("kernel", f"different kernels: {sentence}")


def _generator(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    for side in (baseline, variant):
        share = _mean(side, lambda of: of.generator_share)
        if share is not None and share >= NEAR_CEILING:
            yield _refused(
                "generator",
                f"the load generator was near its ceiling with {side.name} "
                f"({_percent(share)} of it): the difference may be its own",
            )


def _several(baseline: Side, variant: Side, purpose: Purpose) -> Iterator[Obstacle]:
    """Without an experiment nobody said what was varied: more than one thing explains nothing."""
    if purpose.one_experiment:
        return
    found = [each.what for each in differences(baseline, variant)]
    if len(found) > 1:
        yield _warned(
            "several",
            f"{len(found)} things differ ({', '.join(found)}): the difference cannot be laid to "
            "one of them",
        )


_RULES: Final[tuple[Callable[[Side, Side, Purpose], Iterator[Obstacle]], ...]] = (
    *(_durability, _incomplete, _broken, _data, _errors, _ages),
    *(_builds, _hosts, _tools, _generator, _several),
)

_ASPECTS: Final[tuple[tuple[str, Callable[[Circumstances], str | None]], ...]] = (
    ("workload", lambda of: of.workload),
    ("server version", lambda of: of.server_version),
    ("durability class", lambda of: of.durability),
    ("host", lambda of: of.host),
)


def _refused(name: str, sentence: str) -> Obstacle:
    return Obstacle(kind="refused", name=name, sentence=sentence)


def _warned(name: str, sentence: str) -> Obstacle:
    return Obstacle(kind="warned", name=name, sentence=sentence)


def _words(side: Side, read: Callable[[Circumstances], str | None]) -> str:
    """What a side's trials say, each answer once; empty where none says anything."""
    said = (read(each.circumstances) for each in side.readings)
    return " or ".join(dict.fromkeys(each for each in said if each is not None))


def _unlike(
    baseline: Side, variant: Side, read: Callable[[Circumstances], str | None]
) -> str | None:
    """`D2 against D1` where they differ, within a side too; who says nothing differs in nothing."""
    one, other = _words(baseline, read), _words(variant, read)
    if one and other and one != other:
        return f"{one} ({baseline.name}) against {other} ({variant.name})"
    mixed = next((each for each in (one, other) if " or " in each), None)
    return f"{mixed} among the trials of one side" if mixed and one == other else None


def _load(of: Circumstances) -> dict[str, str] | None:
    return dict(of.load)


def _levels(of: Circumstances) -> dict[str, str] | None:
    return dict(of.levels)


def _settings(of: Circumstances) -> dict[str, str] | None:
    return None if of.settings is None else dict(of.settings)


def _data_words(of: Circumstances) -> dict[str, str] | None:
    return None if of.data is None else dict(of.data)


def _merged(
    side: Side, read: Callable[[Circumstances], dict[str, str] | None]
) -> dict[str, str] | None:
    """The words of all trials of a side; None where no trial has any. Unlike values are joined."""
    found: dict[str, dict[str, None]] = {}
    known = [words for each in side.readings if (words := read(each.circumstances)) is not None]
    for words in known:
        for name, value in words.items():
            found.setdefault(name, {})[value] = None
    return {name: " or ".join(values) for name, values in found.items()} if known else None


def _percent(share: float) -> str:
    return f"{share * 100:.2f} %"


def _builds_of(side: Side) -> frozenset[str]:
    return frozenset(words for each in side.readings for words in each.circumstances.build)


def _lost(side: Side) -> float | None:
    shares = [each.not_committed_share for each in side.readings]
    known = [share for share in shares if share is not None]
    return statistics.fmean(known) if known else None


def _mean(side: Side, read: Callable[[Circumstances], float | None]) -> float | None:
    values: Sequence[float | None] = [read(each.circumstances) for each in side.readings]
    known = [value for value in values if value is not None]
    return statistics.fmean(known) if known else None

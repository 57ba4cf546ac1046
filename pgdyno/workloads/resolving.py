"""Gives a workload's parameters their values and renders its files with them. Pure.

Every wrong parameter is told at once: unknown (with the nearest name), of the wrong type, out of
its limits, or at odds with another. Files are rendered by Jinja2, where an undefined name is an
error with file and line; scripts keep pgbench's own `:variables`.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from pgdyno.contract import Failure, TransactionType
from pgdyno.errors import InvalidInput, PgdynoError, Problems, nearest_hint
from pgdyno.expressions import Value, evaluate, evaluate_truth, evaluate_whole
from pgdyno.model import ParameterValue
from pgdyno.units import parse_bytes, parse_count, parse_duration_s
from pgdyno.workloads.definition import (
    FUNCTIONS_FILE,
    INDEXES_FILE,
    LOAD_FILE,
    RESET_FILE,
    SCHEMA_FILE,
    Check,
    CheckDefinition,
    Parameter,
    ResolvedWorkload,
    Table,
    TransactionDefinition,
    Workload,
)
from pgdyno.workloads.rendering import Renderer
from pgdyno.workloads.statements import split_sections, split_statements

_FOR_EACH_MAX = 1000
_TRUTHS = {"true": True, "yes": True, "on": True, "1": True}
_TRUTHS |= {"false": False, "no": False, "off": False, "0": False}


def resolve(
    workload: Workload, parameters: Mapping[str, str], *, weights: Mapping[str, int] | None = None
) -> ResolvedWorkload:
    """A workload with every parameter set and every file rendered.

    `parameters` are as a person wrote them (`users` → `2M`); those not given have their defaults.
    `weights` replaces the weights of transaction types. Raises `Problems` with all that is wrong.
    """
    values = parameter_values(workload, parameters)
    seen = _with_derived(workload, values)
    render = Renderer(workload.files, seen)
    kinds = _transaction_types(workload, render, weights or {})
    tables = _tables(workload, render)
    checks = tuple(
        _check(each, render) for each in workload.definition.checks if render.wanted(each.when)
    )
    files = (SCHEMA_FILE, LOAD_FILE, INDEXES_FILE, FUNCTIONS_FILE, RESET_FILE)
    schema_sql, load_sql, indexes_sql, functions_sql, reset_sql = map(render.file, files)
    render.raise_problems()
    sections = split_sections(load_sql, workload.files[LOAD_FILE].shown, seen) if load_sql else ()
    return ResolvedWorkload(
        name=workload.name,
        data_name=workload.data_name,
        data_version=workload.definition.data_version,
        parameters=values,
        data_parameters={
            name: values[name]
            for name, each in workload.parameters.items()
            if each.affects == "data"
        },
        names=dict(seen),
        variables=_variables(workload, seen),
        extensions=workload.definition.extensions,
        tables=tables,
        schema_sql=schema_sql,
        sections=sections,
        index_statements=split_statements(indexes_sql),
        functions_sql=functions_sql,
        reset_sql=reset_sql,
        transaction_types=kinds,
        checks=checks,
        expected_bytes=max(0, evaluate_whole(f"ceil({workload.definition.expected_bytes})", seen)),
        adopt=workload.definition.adopt,
    )


def parameter_values(workload: Workload, given: Mapping[str, str]) -> dict[str, ParameterValue]:
    """Every parameter with its value, in the order of the definition; raises `Problems`."""
    values: dict[str, ParameterValue] = {}
    problems: list[str] = []
    for name, text in given.items():
        if name in workload.parameters:
            continue
        if workload.open_parameters and name.isidentifier():
            values[name] = text
            continue
        near = nearest_hint(name, workload.parameters)
        problems.append(f"workload '{workload.name}' has no parameter '{name}': {near}")
    for name, parameter in workload.parameters.items():
        if name not in given:
            values[name] = parameter.default
            continue
        try:
            values[name] = _parsed(parameter, given[name])
        except InvalidInput as error:
            hint = f" ({error.hint})" if error.hint else ""
            problems.append(f"parameter '{name}': {error.message}{hint}")
    if not problems:
        problems = _constraint_problems(workload, values)
    if problems:
        raise Problems(
            problems, hint=f"'pgdyno workloads {workload.name}' describes its parameters"
        )
    return values


def _parsed(parameter: Parameter, text: str) -> ParameterValue:
    """One value as a person wrote it; raises `InvalidInput` with what is allowed."""
    match parameter.type:
        case "choice":
            if text not in parameter.choices:
                allowed = ", ".join(parameter.choices)
                raise InvalidInput(f"'{text}' is not one of {allowed}")
            return text
        case "boolean":
            if text.lower() not in _TRUTHS:
                raise InvalidInput(f"'{text}' is neither true nor false")
            return _TRUTHS[text.lower()]
        case "text":
            return text
    return _within_limits(parameter, _number(parameter, text))


def _number(parameter: Parameter, text: str) -> float:
    if parameter.unit == "bytes":
        return parse_bytes(text)
    if parameter.unit == "s":
        seconds = parse_duration_s(text)
        if parameter.type == "number":
            return seconds
        if seconds != int(seconds):
            raise InvalidInput(f"'{text}' is not a whole number of seconds")
        return int(seconds)
    if parameter.type == "integer":
        negative = text.strip().startswith("-")
        return -parse_count(text.strip()[1:]) if negative else parse_count(text)
    try:
        return float(text)
    except ValueError:
        raise InvalidInput(f"'{text}' is not a number") from None


def _within_limits(parameter: Parameter, number: float) -> float:
    unit = f" {parameter.unit}" if parameter.unit else ""
    shown = f"{number:,}".replace(",", " ") + unit
    # Written this way round so that NaN, which compares false with everything, is refused too.
    if parameter.min is not None and not number >= parameter.min:
        raise InvalidInput(f"{shown} is below the smallest allowed, {parameter.min:,.10g}")
    if parameter.max is not None and not number <= parameter.max:
        raise InvalidInput(f"{shown} is above the largest allowed, {parameter.max:,.10g}")
    return number


def _constraint_problems(workload: Workload, values: Mapping[str, ParameterValue]) -> list[str]:
    return [
        constraint.message
        for constraint in workload.definition.constraints
        if not evaluate_truth(constraint.rule, values)
    ]


def _with_derived(
    workload: Workload, values: Mapping[str, ParameterValue]
) -> dict[str, ParameterValue]:
    seen = dict(values)
    for name, text in workload.definition.derived.items():
        try:
            seen[name] = evaluate(text, seen)
        except PgdynoError as error:
            raise Problems([f"{workload.name}: derived.{name}: {error.message}"]) from None
    return seen


def _variables(workload: Workload, seen: Mapping[str, Value]) -> dict[str, str]:
    """What scripts may use as `:name`: numbers, and anything given to a bare script.

    Texts are left out: a variable called `login` would otherwise replace `:login` in any statement.
    """
    return {
        name: str(value)
        for name, value in seen.items()
        if workload.open_parameters
        or (isinstance(value, int | float) and not isinstance(value, bool))
    }


def _repeated(for_each: Mapping[str, str], render: Renderer) -> Iterable[dict[str, ParameterValue]]:
    """The extra names of each repetition; one without any where nothing is repeated."""
    for name, text in for_each.items():
        count = evaluate_whole(text, render.names)
        if not 0 <= count <= _FOR_EACH_MAX:
            render.problem(
                f"for_each {name}: '{text}' is {count}, which is not 0 to {_FOR_EACH_MAX}"
            )
            return []
        return [{name: number} for number in range(count)]
    return [{}]


def _transaction_types(
    workload: Workload, render: Renderer, weights: Mapping[str, int]
) -> tuple[TransactionType, ...]:
    kinds = [
        _transaction_type(each, render, extra)
        for each in workload.definition.transaction_types
        if render.wanted(each.when)
        for extra in _repeated(each.for_each, render)
    ]
    known = [kind.name for kind in kinds]
    for name in sorted({name for name in known if known.count(name) > 1}):
        render.problem(f"there are two transaction types '{name}'")
    for name in weights:
        if name not in known:
            near = nearest_hint(name, known)
            render.problem(f"workload '{workload.name}' has no transaction type '{name}': {near}")
        elif weights[name] < 0:
            render.problem(f"the weight of '{name}' is below 0")
    chosen = tuple(
        kind.model_copy(update={"weight": weights.get(kind.name, kind.weight)}) for kind in kinds
    )
    if not any(kind.weight > 0 for kind in chosen):
        render.problem(f"no transaction type of workload '{workload.name}' has a weight above 0")
    return chosen


def _transaction_type(
    kind: TransactionDefinition, render: Renderer, extra: Mapping[str, ParameterValue]
) -> TransactionType:
    failure = None
    if kind.failure is not None and render.wanted(kind.failure.when):
        column = render.text(kind.failure.column, extra)
        failure = Failure(column=column, success=kind.failure.success)
    return TransactionType(
        name=render.text(kind.name, extra),
        weight=max(0, evaluate_whole(str(kind.weight), render.names | dict(extra))),
        source=render.shown(kind.file),
        script=render.file(kind.file, extra),
        failure=failure,
    )


def _tables(workload: Workload, render: Renderer) -> tuple[Table, ...]:
    return tuple(
        Table(
            name=render.text(each.name, extra),
            unlogged=evaluate_truth(each.unlogged or "false", render.names),
        )
        for each in workload.definition.tables
        for extra in _repeated(each.for_each, render)
    )


def _check(check: CheckDefinition, render: Renderer) -> Check:
    return Check(
        name=check.name,
        about=check.about,
        source=render.shown(check.file),
        query=render.file(check.file),
        unlogged=evaluate_truth(check.unlogged or "false", render.names),
        after_load=check.after_load,
        after_measurement=check.after_measurement,
    )

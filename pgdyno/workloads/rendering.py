"""Renders the templates of a workload with its parameters through Jinja2. Pure.

An undefined name is an error, the sandbox keeps templates from reaching anything but values, and
problems are collected so that all of a folder's are told at once.

>>> Renderer({}, {"shards": 2}).text("{% for n in range(shards) %}t_{{ n }} {% endfor %}", {})
't_0 t_1 '
"""

from __future__ import annotations

from collections.abc import Mapping

from jinja2 import StrictUndefined, TemplateError, TemplateSyntaxError
from jinja2.sandbox import ImmutableSandboxedEnvironment

from pgdyno.errors import Problems
from pgdyno.expressions import evaluate_truth
from pgdyno.model import ParameterValue
from pgdyno.workloads.definition import SourceFile

_ENVIRONMENT = ImmutableSandboxedEnvironment(
    undefined=StrictUndefined,
    trim_blocks=True,
    lstrip_blocks=True,
    keep_trailing_newline=True,
    autoescape=False,
)


class Renderer:
    """The files of one workload and the names that they may use; remembers every problem."""

    def __init__(
        self, files: Mapping[str, SourceFile], names: Mapping[str, ParameterValue]
    ) -> None:
        self.names = dict(names)
        self._files = files
        self._problems: list[str] = []

    def problem(self, text: str) -> None:
        """Remember a problem, one line."""
        if text not in self._problems:
            self._problems.append(text)

    def raise_problems(self) -> None:
        """Raise `Problems` where there are any."""
        if self._problems:
            raise Problems(self._problems)

    def wanted(self, when: str | None) -> bool:
        """Whether a condition holds; without one it does."""
        return when is None or evaluate_truth(when, self.names)

    def shown(self, file: str) -> str:
        """The name of a file in messages."""
        return self._files[file].shown

    def file(self, file: str, extra: Mapping[str, ParameterValue] | None = None) -> str:
        """A file rendered, or nothing where the workload has no such file."""
        source = self._files.get(file)
        if source is None:
            return ""
        if source.plain:
            return source.text
        return self._rendered(source.text, extra or {}, source.shown)

    def text(self, template: str, extra: Mapping[str, ParameterValue]) -> str:
        """A short template of the definition rendered."""
        return self._rendered(template, extra, f"'{template}'")

    def _rendered(self, template: str, extra: Mapping[str, ParameterValue], shown: str) -> str:
        try:
            return _ENVIRONMENT.from_string(template).render(self.names | dict(extra))
        except TemplateSyntaxError as error:
            self.problem(f"{shown}:{error.lineno}: {_lowered(error.message or 'wrong template')}")
        except (TemplateError, ArithmeticError, TypeError, ValueError) as error:
            line = _line_in_template(error)
            at = shown if line is None else f"{shown}:{line}"
            self.problem(f"{at}: {_lowered(str(error))}")
        return ""


def _line_in_template(error: BaseException) -> int | None:
    """The line of the template where rendering stopped: the innermost frame that Jinja2 rewrote."""
    line, trace = None, error.__traceback__
    while trace is not None:
        if trace.tb_frame.f_code.co_filename == "<template>":
            line = trace.tb_lineno
        trace = trace.tb_next
    return line


def _lowered(text: str) -> str:
    return text[:1].lower() + text[1:]

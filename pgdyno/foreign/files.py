"""Files of other load generators into readings: who wrote which, and which of them are one trial.

Logs of one pgbench run (`PREFIX.PID`, `PREFIX.PID.THREAD`) are one trial, and those of threads that
were not named are found beside the first. A report and a log that tell of equally many transactions
are one trial, too.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from pgdyno.errors import InvalidInput
from pgdyno.experiment.readings import Reading
from pgdyno.foreign import pgbench, pgbench_log, sysbench

_READERS = (
    (pgbench.is_pgbench, pgbench.read_text),
    (sysbench.is_sysbench, sysbench.read_text),
)
_THREAD_LOG = re.compile(r"^(?P<stem>.+\.\d+)\.\d+$")


def read_files(paths: Sequence[Path]) -> tuple[Reading, ...]:
    """All trials in the files. `InvalidInput` for one that no known tool has written."""
    reports: list[Reading] = []
    logs: dict[Path, list[str]] = {}
    seen: set[Path] = set()
    for path in paths:
        text = _text(path)
        if pgbench_log.is_log(text):
            for thread in _threads(path):
                if thread not in seen:
                    seen.add(thread)
                    logs.setdefault(_stem(path), []).append(_text(thread))
            continue
        found = [each for each in _READERS if each[0](text)]
        for _, read in found:
            reports.extend(read(text, str(path)))
        if not found:
            raise InvalidInput(
                f"{path} is neither a run nor an output of pgbench or sysbench",
                hint="give a run, a report as text, or a log that pgbench -l has written",
            )
    from_logs = [pgbench_log.read_log(texts, str(stem)) for stem, texts in logs.items()]
    return tuple(_joined(reports, from_logs))


def _joined(reports: list[Reading], logs: list[Reading]) -> Iterable[Reading]:
    """Reports, each with the one log that tells of as many transactions; then the other logs."""
    left = list(logs)
    for report in reports:
        same = [log for log in left if report.committed and log.committed == report.committed]
        if len(same) == 1:
            left.remove(same[0])
            yield _with_log(report, same[0])
        else:
            yield report
    yield from left


def _with_log(report: Reading, log: Reading) -> Reading:
    """The report's own figures, with the times that only the log has."""
    return replace(
        report,
        label=f"{report.label} with {Path(log.label).name}",
        values={**log.values, **report.values, "average_us": log.values["average_us"]},
        absent={},
        unknown=tuple(each for each in report.unknown if not each.startswith("average")),
    )


def _stem(path: Path) -> Path:
    match = _THREAD_LOG.match(path.name)
    return path.with_name(match["stem"]) if match else path


def _threads(path: Path) -> list[Path]:
    """The logs of all threads of the run that a log belongs to."""
    stem = _stem(path)
    beside = [each for each in stem.parent.glob(f"{stem.name}.*") if _stem(each) == stem]
    found = sorted({path, *([stem] if stem.exists() else []), *beside})
    return [each for each in found if each.is_file()]


def _text(path: Path) -> str:
    try:
        # Pages that reports were pasted into hold other blanks.
        return path.read_text(errors="replace").replace("\u00a0", " ")
    except OSError as error:
        raise InvalidInput(f"{path} cannot be read: {error.strerror}") from error

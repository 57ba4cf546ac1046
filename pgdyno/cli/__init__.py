"""The command line: `pgdyno VERB WORKLOAD|RUN|FILE [options]`; one file a command, parsing only.

Exit codes: 0 done, 1 could not, 2 usage or invalid input, 3 done but a check failed,
130 interrupted.
"""

from __future__ import annotations

import signal
import sys
from types import FrameType

import click

from pgdyno import __version__
from pgdyno.cli.ab import ab
from pgdyno.cli.calibrate import calibrate_command
from pgdyno.cli.compare import compare
from pgdyno.cli.doctor import doctor
from pgdyno.cli.experiment import experiment
from pgdyno.cli.list import list_command
from pgdyno.cli.pgbench import pgbench
from pgdyno.cli.prune import prune
from pgdyno.cli.report import report
from pgdyno.cli.rerun import rerun
from pgdyno.cli.run import run
from pgdyno.cli.servers import servers
from pgdyno.cli.show import show
from pgdyno.cli.tag import tag
from pgdyno.cli.workloads import workloads
from pgdyno.errors import EXIT_INTERRUPTED, PgdynoError


@click.group(context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100})
@click.version_option(__version__, prog_name="pgdyno")
def cli() -> None:
    """Put a known load on PostgreSQL, watch everything, and get an answer worth something.

    Start with `pgdyno run userlogin`: it needs no server of yours.
    """


_COMMANDS = (
    *(run, ab, rerun, list_command, show, report, tag, prune, workloads, servers),
    experiment,
    *(compare, calibrate_command, pgbench, doctor),
)
for _command in _COMMANDS:
    cli.add_command(_command)


def main() -> None:
    """Entry point of the console command."""
    # A terminated or hung-up pgdyno stops what it started, as after Ctrl-C.
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGHUP, _interrupt)
    try:
        sys.exit(cli.main(standalone_mode=False))
    except click.ClickException as error:
        _complain(error.format_message(), _usage_hint(error))
        sys.exit(error.exit_code)
    except PgdynoError as error:
        _complain(error.message, error.hint)
        sys.exit(error.exit_code)
    except (KeyboardInterrupt, click.Abort):
        _complain("interrupted", None)
        sys.exit(EXIT_INTERRUPTED)
    except BrokenPipeError:
        # Whoever read our output has gone (`pgdyno list | head`); nobody is left to be told.
        sys.stderr.close()
        sys.exit(EXIT_INTERRUPTED)


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    raise KeyboardInterrupt


def _usage_hint(error: click.ClickException) -> str | None:
    if isinstance(error, click.UsageError) and error.ctx is not None:
        return f"see {error.ctx.command_path} --help"
    return None


def _complain(message: str, hint: str | None) -> None:
    for line in message.splitlines():
        text = line[:1].lower() + line[1:] if line[1:2].islower() else line
        click.echo(f"pgdyno: {text}", err=True)
    if hint is not None:
        click.echo(f"hint: {hint}", err=True)

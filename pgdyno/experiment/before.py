"""The person's own command before a trial: a shell line with the server in PG* variables.

It runs once the trial's server holds its data, as whoever runs pgdyno, with the server's own
client programs first on PATH. What it prints goes to the trial's logs. It may change the data; the
checks after the measurement compare with what it left.
"""

from __future__ import annotations

import os

from psycopg import pq
from psycopg.conninfo import conninfo_to_dict

from pgdyno.errors import PgdynoError
from pgdyno.experiment.context import Context
from pgdyno.hosts.base import Command
from pgdyno.servers.base import Server

DEADLINE_S = 3600.0
LOG = "before.log"
# The shell is given log and line as words, so that nothing has to be quoted.
_SHELL = 'exec sh -c "$1" > "$0" 2>&1'


def run_before(context: Context, line: str, server: Server) -> None:
    """Run the command to its end. Raises `PgdynoError` with its last line when it fails."""
    log = context.stored.folder / "logs" / LOG
    given = server_environment(server)
    # A service file of the person's would stand above these variables.
    unwanted = [name for name in _variables().values() if name not in given]
    words = ["env", *(word for name in unwanted for word in ("-u", name))]
    words += ["sh", "-c", _SHELL, str(log.absolute()), line]
    with context.diary.phase("provision", "the command before the trial"):
        done = context.host.run(Command(words=words, environment=given), deadline_s=DEADLINE_S)
    if done.status != 0:
        said = (context.host.read_text(log) or "").strip().splitlines()
        last = said[-1] if said else "it said nothing"
        raise PgdynoError(
            f"the command before the trial failed with status {done.status}: {last}",
            hint=f"its output is in {log}",
        )
    # What it did to the data is not known.
    context.snapshot = None


def server_environment(server: Server) -> dict[str, str]:
    """The variables by which libpq finds the server; the password only here, never in a word."""
    variables = _variables()
    given = {
        variables[name]: str(value)
        for name, value in conninfo_to_dict(server.conninfo).items()
        if name in variables
    }
    if server.password is not None:
        given["PGPASSWORD"] = server.password
    elif "PGPASSWORD" in os.environ and not server.private:
        given["PGPASSWORD"] = os.environ["PGPASSWORD"]
    if server.bin_dir is not None:
        given["PATH"] = f"{server.bin_dir}:{os.environ.get('PATH', os.defpath)}"
    return given


def _variables() -> dict[str, str]:
    """Connection parameter → the variable that libpq reads it from, as libpq itself says."""
    return {
        option.keyword.decode(): option.envvar.decode()
        for option in pq.Conninfo.get_defaults()
        if option.envvar is not None
    }

"""The last moment before a measurement: a checkpoint, and how old the state is by then."""

from __future__ import annotations

import psycopg

from pgdyno.experiment.context import Context, target_of
from pgdyno.observers.session import session
from pgdyno.observers.state_age import read_state_age
from pgdyno.servers.base import Server
from pgdyno.workloads.state import count_measurement
from pgdyno.workloads.target import connect, first_line


def settle(context: Context, server: Server) -> None:
    """Put every trial at the same distance from the next checkpoint, and record the state's age.

    A single run on the person's own server is left as it is: there a checkpoint is their matter.
    """
    if server.private or context.diary.trial.reset is not None:
        with context.diary.phase("reset", "a checkpoint before the measurement"):
            _checkpoint(context, server)
    measurements = count_measurement(target_of(server), context.workload)
    tables = {table.name for table in context.workload.tables}
    with session(server.conninfo, server.password) as asked:
        age = read_state_age(asked, tables)
    context.diary.learn(state_age=age.model_copy(update={"measurements": measurements}))


def _checkpoint(context: Context, server: Server) -> None:
    try:
        with connect(target_of(server)) as connection:
            connection.execute("checkpoint")
    except psycopg.Error as error:
        reset = context.diary.trial.reset
        if reset is not None and reset.method == "template":
            return  # The server made one by itself before it copied the database.
        context.diary.notice(
            f"no checkpoint before the measurement, so trials may differ: {first_line(error)}"
        )

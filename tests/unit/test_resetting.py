"""How trials get their loaded state: the choice by what is there, and what is refused."""

from __future__ import annotations

import pytest

from pgdyno.errors import InvalidInput
from pgdyno.experiment.resetting import choose_for_dsn, choose_for_private
from pgdyno.model import ResetMethod
from pgdyno.servers.orphans import Here
from pgdyno.servers.processes import ProcessIdentity
from pgdyno.servers.trial_database import is_orphan, own_name

pytestmark = pytest.mark.unit

GB = 1024**3


@pytest.mark.parametrize(
    ("can_clone", "free_bytes", "method"),
    [(True, 1 * GB, "clone"), (False, 30 * GB, "copy"), (False, 21 * GB, "load")],
)
def test_a_private_server_takes_the_fastest_that_has_room(
    *, can_clone: bool, free_bytes: int, method: str
) -> None:
    choice = choose_for_private(
        "auto", can_clone=can_clone, data_bytes=10 * GB, free_bytes=free_bytes
    )
    assert choice.method == method
    assert choice.reason


def test_what_is_asked_for_is_taken_and_a_clone_that_cannot_be_is_refused() -> None:
    for asked in ("template", "copy", "load", "none"):
        choice = choose_for_private(asked, can_clone=True, data_bytes=GB, free_bytes=9 * GB)
        assert (choice.method, choice.reason) == (asked, "asked for")
    with pytest.raises(InvalidInput, match="can share blocks"):
        choose_for_private("clone", can_clone=False, data_bytes=GB, free_bytes=9 * GB)


@pytest.mark.parametrize(
    ("has_data", "adopted", "obstacle", "method"),
    [
        (True, False, None, "template"),
        (True, True, None, "template"),
        (True, False, "no CREATEDB", "load"),
        (True, True, "no CREATEDB", "none"),
        (False, False, None, "none"),
    ],
)
def test_a_server_of_ones_own_gets_copies_of_its_database_where_it_lets_us(
    *, has_data: bool, adopted: bool, obstacle: str | None, method: str
) -> None:
    choice = choose_for_dsn("auto", has_data=has_data, adopted=adopted, obstacle=obstacle)
    assert choice.method == method
    assert obstacle is None or obstacle in choice.reason


@pytest.mark.parametrize(
    ("asked", "message"),
    [
        ("clone", "stopped private server"),
        ("copy", "stopped private server"),
        ("template", "others are connected"),
        ("load", "did not make"),
    ],
)
def test_nobody_elses_tables_are_replaced_and_no_file_copied(
    asked: ResetMethod, message: str
) -> None:
    with pytest.raises(InvalidInput, match=message):
        choose_for_dsn(asked, has_data=True, adopted=True, obstacle="others are connected")


HERE = Here(machine="here", boot_id="boot", pid_namespace="pid:[1]")
OWNER = ProcessIdentity(pid=42, start_ticks=7)


@pytest.mark.parametrize(
    ("made_at", "lives", "orphan"),
    [
        (HERE, False, True),
        (HERE, True, False),
        (Here(machine="here", boot_id="before", pid_namespace="pid:[1]"), True, True),
        (Here(machine="here", boot_id="boot", pid_namespace="pid:[2]"), False, False),
        (Here(machine="there", boot_id="boot", pid_namespace="pid:[1]"), False, False),
    ],
)
def test_only_copies_of_processes_known_to_be_gone_are_dropped(
    made_at: Here, *, lives: bool, orphan: bool
) -> None:
    name = own_name(made_at, OWNER)
    assert len(name) <= 63
    assert is_orphan(name, HERE, lambda owner: lives and owner == OWNER) == orphan


@pytest.mark.parametrize("name", ["pgdyno_trial_", "pgdyno_trial_x_y_z_1_1", "bench"])
def test_databases_of_others_are_never_dropped(name: str) -> None:
    assert not is_orphan(name, HERE, lambda _: False)

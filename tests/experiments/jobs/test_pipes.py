"""A launch's orders are for its ranks alone: no other user reads, writes or sees its pipes."""

import os
import shutil
import stat
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.jobs.pipes import Pipes
from experiments.results import store
from experiments.schedule.turns import Lost
from tests.second_user import SecondUser

OPENED = 'for each; do if test -r "$each" -o -w "$each"; then echo "$each"; fi; done'


def test_pipes_and_their_folder_are_private_whatever_the_umask(tmp_path: Path) -> None:
    before = os.umask(0)
    try:
        with store.incoming(tmp_path / "out", "0000-host") as place, Pipes(place, 2):
            modes = {path.name: stat.S_IMODE(path.stat().st_mode) for path in place.iterdir()}
            assert modes == {"orders.0": 0o600, "orders.1": 0o600, "answers": 0o600}
            assert stat.S_IMODE(place.stat().st_mode) == 0o700
    finally:
        os.umask(before)


def test_another_user_opens_no_pipe(second_user: SecondUser, shared_by_users: Path) -> None:
    with store.incoming(shared_by_users, "0000-host") as place, Pipes(place, 2):
        paths = sorted(place.iterdir())
        words = ["sh", "-c", OPENED, "sh", *map(str, paths)]
        assert len(paths) == 3 and second_user.run(words).stdout == ""
        place.chmod(0o755)  # the pipes are private on their own as well
        assert second_user.run(words).stdout == ""
        paths[0].chmod(0o644)
        assert second_user.run(words).stdout == f"{paths[0]}\n"  # it would be seen


@pytest.mark.parametrize("put", [os.symlink, shutil.copy, lambda _, place: place.mkdir(), None])
def test_a_rank_that_puts_something_in_the_place_of_its_pipe_gets_no_orders_written(
    tmp_path: Path, put: Callable[[Path, Path], object] | None
) -> None:
    """Where the driver is root, a launch's folder belongs to its ranks in a container."""
    precious = tmp_path / "precious"
    precious.write_text("as it was")
    with store.incoming(tmp_path / "out", "0000-docker") as place, Pipes(place, 1) as ends:
        pipe = place / "orders.0"
        assert not ends.connect()
        pipe.unlink()
        if put is not None:
            put(precious, pipe)
        with pytest.raises(Lost, match=r"was ended, its pipe orders\.0 (has gone|is none)"):
            ends.connect()
            ends.send("order")
        shutil.rmtree(place)
        with pytest.raises(FileNotFoundError):
            ends.connect()
    assert precious.read_text() == "as it was"

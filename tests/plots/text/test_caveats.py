"""What may be an arm's whole effect though it is not the container."""

from collections.abc import Sequence
from typing import Any

import pandas as pd
import pytest

from experiments.analysis.confounders import UNPACKED, confounders
from experiments.results.result import Result
from plots.text import causes
from tests.campaigns import changed, find, make_cells
from tests.launched import made


def launch(arm: str, **recorded: dict[str, str]) -> Result:
    asked = {"environment": arm.partition("-")[0], "arm": arm, "mpi": "openmpi"}
    return made({"launch": asked, "environment": recorded})


def copies(docker: float = 1.0, again: float = 1.0) -> pd.DataFrame:
    """Plain copies, so many times as slow in an arm, at 1 KiB only."""
    frame = make_cells(
        operations=("copy",),
        transports=("none",),
        kinds=("regular",),
        sizes=(1024, 16384, 262144),  # the model's container costs nothing there
    )
    small = frame["bytes"] == 1024
    frame.loc[small & (frame["arm"] == "docker-tuned-one"), "median_s"] *= docker
    frame.loc[small & (frame["arm"] == "host-again"), "median_s"] *= again
    return frame


NOTHING: dict[str, Any] = {"containers": {}, "reference_files": {}}


def sentences(
    launches: Sequence[dict[str, Any]] = (),
    header: dict[str, Any] = NOTHING,
    controls: pd.DataFrame | None = None,
) -> tuple[str, ...]:
    copied = make_cells(blocks=1).head(0) if controls is None else controls
    beside = confounders(launches, header, copied)
    return tuple(causes.beside_data_path(changed(find(), confounders=beside)))


def shown(controls: pd.DataFrame) -> tuple[str, ...]:
    return sentences(controls=controls)


def test_another_python_is_a_caveat() -> None:
    launches = [
        launch("host", versions={"python": "3.11.7", "mpi": "5"}),
        launch("docker", versions={"python": "3.11.2", "mpi": "5"}),
    ]
    python = "The interpreters differ: Python: host 3.11.7, docker 3.11.2."
    assert sentences(launches) == (python,)


def test_without_launches_or_with_one_python_there_is_no_caveat() -> None:
    launches = [launch(name, versions={"python": "3.11.7"}) for name in ("host", "docker")]
    assert sentences(launches) == sentences() == ()


def test_other_copies_of_the_same_files_are_a_caveat() -> None:
    images = {"userland": "no root", "docker": "layers"}
    containers = {name: {"openmpi": {"files": files}} for name, files in images.items()}
    files = {"openmpi": "no room", "mpich": "copies"}
    other, own = sentences(header={"containers": containers, "reference_files": files})
    assert "than Docker's containers (userland: no root). Where" in other
    assert "from one copy of their files (openmpi: no room)" in own and "floor does not hold" in own


def test_of_older_campaigns_the_image_was_unpacked() -> None:
    header = {"containers": {"docker": {"m": {}}, "userland": {"m": {}}}, "reference_files": {}}
    (other,) = sentences(header=header)
    assert f"(userland: {UNPACKED})" in other


def test_a_copy_that_takes_another_time_in_the_container_is_a_caveat() -> None:
    (text,) = shown(copies(docker=0.8))
    assert "a plain copy without MPI already takes 0.8" in text
    assert "times as long in docker-tuned-one at 1 KiB, 2 ranks" in text
    assert "1 of 3 copies differ like this" in text


def test_copies_alike_are_no_caveat() -> None:
    assert shown(copies()) == ()


def test_a_copy_that_strays_no_further_than_the_twins_is_no_caveat() -> None:
    assert shown(copies(docker=1.2, again=1.6)) == ()


def test_few_blocks_without_an_interval_still_warn() -> None:
    frame = copies(docker=0.8)
    (text,) = shown(frame[frame["block"] < 2])
    assert "(no interval)" in text


@pytest.mark.parametrize("arms", [("host",), ("docker-tuned-one",), ()])
def test_without_both_arms_there_is_nothing_to_compare(arms: tuple[str, ...]) -> None:
    frame = copies(docker=0.8)
    assert shown(frame[frame["arm"].isin(arms)]) == ()

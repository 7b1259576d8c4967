"""What contenders left out or did wrong is reported once, with where and why."""

from typing import Any

from experiments.analysis.validity_warnings import left_out
from tests.launched import made


def launch(arm: str, *cells: dict[str, Any], without: tuple[dict[str, Any], ...] = ()) -> Any:
    return made({"launch": {"arm": arm, "ranks": 2, "without": without}, "cells": cells})


def cell(transport: str, size: int | None, **more: str) -> dict[str, Any]:
    return {"operation": "gather", "transport": transport, "form": "plain", "bytes": size} | more


def test_what_went_well_is_not_mentioned() -> None:
    assert [*left_out([launch("mpich", cell("mpi", 8))])] == []


def test_wrong_data_is_reported_with_all_sizes_together() -> None:
    notes = left_out(
        [launch("impi", *(cell("mpi", size, wrong="1 element") for size in (1024, 8)))]
    )
    assert [*notes] == ["impi: plain Gather of 8, 1,024 bytes left wrong data, not counted"]


def test_a_contender_that_is_no_mpi_is_reported_with_the_mpi_beside_it() -> None:
    (note,) = left_out([launch("impi", cell("pickle", 8, wrong="1 element"))])
    assert note.startswith("pickle beside impi: plain Gather of 8 bytes")


def test_what_failed_is_reported_with_its_reason_once_for_all_blocks() -> None:
    left = (cell("mpi", 8, why="exit code 139"), cell("mpi", None, why="exit code 139"))
    (note,) = left_out([launch("openmpi-sm", without=left)] * 2)
    assert note == (
        "openmpi-sm, 2 ranks: plain Gather of any size left out once it failed: exit code 139"
    )

"""MPIs as the arms of a block: which meet, in which form, and in what order."""

import functools
from collections import Counter
from dataclasses import replace
from typing import Any

from experiments.driver import together
from experiments.model import mpi_settings
from experiments.model.contender_names import LACKING
from experiments.model.experiment import Experiment
from experiments.model.launch import Cell, Launch, LeftOut
from experiments.schedule.blocks import schedule, varied
from tests.benches import ask


@functools.cache
def launches(**flags: Any) -> tuple[Launch, ...]:
    """Arms of the first block."""
    return schedule(ask(4, **flags), 1)[0].launches


def test_a_block_has_each_mpi_in_each_of_its_settings_once() -> None:
    counts = Counter((launch.mpi, launch.setting) for launch in launches(tuned=True))
    wanted = [
        (mpi, s) for mpi in ("openmpi", "mpich", "impi") for s in mpi_settings.settings(mpi, True)
    ]
    assert counts == Counter(wanted)
    names = [launch.name for launch in launches(tuned=True)]
    assert len(set(names)) == len(names) and {"0000-mpich", "0000-openmpi-ucx-sm"} <= set(names)
    assert {launch.setting for launch in launches()} == {"default"}


def test_blocks_visit_every_rank_count_and_differ_in_their_order() -> None:
    blocks = schedule(ask("2,3", blocks=3), 1)
    assert Counter(block.launches[0].ranks for block in blocks) == {2: 3, 3: 3}
    assert len({tuple(launch.arm for launch in block.launches) for block in blocks}) > 1
    every = [launch for block in blocks for launch in block.launches]
    assert set(varied(every).values()) == {" (2 ranks)", " (3 ranks)"}


def test_the_contests_of_a_block_are_those_of_all_its_launches_each_cell_once() -> None:
    planned = launches(tuned=True)
    united = together._united(planned)
    for contest in united:
        assert len({cell.contest for cell in contest}) == 1
    cells = [cell for contest in united for cell in contest]
    assert len(set(cells)) == len(cells)
    assert set(cells) == {cell for launch in planned for cell in launch.plan}


def test_what_is_no_mpi_meets_direct_once_beside_each_mpi_in_their_one_form() -> None:
    planned = launches(tuned=True, operations="all", forms="plain,persistent")
    for launch in planned:
        asked = {(cell.transport, cell.form) for cell in launch.cells}
        others = set(LACKING)
        expected = {(name, "plain") for name in others if launch.setting == "default"}
        assert {pair for pair in asked if pair[0] in others} == expected
        pickled = {cell.operation for cell in launch.cells if cell.transport == "pickle"}
        assert not pickled & {"reduce_scatter", "barrier"}
        assert ("mpi", "persistent") in asked


def test_groups_of_torch_have_plain_calls_alone_in_environments_too() -> None:
    factors = {"transports": ["direct", "gloo", "torch"], "forms": ["plain", "persistent"]}
    asked = Experiment.from_dict(
        {"name": "x", "title": "t", "question": "q", "factors": factors}, "mine"
    )
    cells = schedule(asked, 1)[0].launches[0].cells
    assert {(cell.transport, cell.form) for cell in cells} == {
        *(("direct", form) for form in ("plain", "persistent")),
        *((name, "plain") for name in ("gloo", "torch")),
    }


def test_in_place_all_but_calls_of_objects_reduce_and_nobody_does_anything_else() -> None:
    for launch in launches(operations="all", forms="plain,in-place"):
        pairs = {(cell.operation, cell.transport) for cell in launch.cells if cell.form != "plain"}
        assert {operation for operation, _ in pairs} == {"allreduce"}
        assert {name for _, name in pairs} == {"direct", "direct-again", "mpi", *LACKING} - {
            "pickle",
            "objects",
        }


def test_where_direct_leaves_nonblocking_calls_to_mpi_they_are_not_compared() -> None:
    for launch in launches(tuned=True, forms="plain,nonblocking"):
        forms = {cell.form for cell in launch.cells}
        assert ("nonblocking" in forms) == mpi_settings.runs_nonblocking(launch.mpi, launch.setting)
    assert len(launches(tuned=True, forms="nonblocking")) < len(launches(tuned=True))


def test_another_build_has_as_many_turns_as_direct() -> None:
    counts = Counter(cell.transport for cell in launches(against="there", peers="mpich")[0].cells)
    assert counts["direct"] == counts["direct-again"] == counts["other-build"]
    assert counts["other-build-again"] == counts["other-build"]


def test_a_barrier_has_one_size_and_no_copy() -> None:
    (launch,) = launches(operations="Barrier", peers="mpich", forms="plain")
    assert [cell.bytes for cell in launch.cells] == [0] * 3
    (contest,) = launch.contests
    assert {cell.transport for cell in contest} == {"direct", "direct-again", "mpi"}


def test_each_size_is_bounded_by_one_copy_before_its_first_contest() -> None:
    for contests in (launches()[0].contests, launches(operations="all")[0].contests):
        sizes = [contest[0].bytes for contest in contests if contest[0].operation != "barrier"]
        copies = [contest[0].bytes for contest in contests if contest[0].operation == "copy"]
        assert copies == list(dict.fromkeys(sizes))


def test_what_is_left_out_is_in_no_contest() -> None:
    launch = launches(operations="Bcast", sizes="8,64", peers="mpich")[0]
    for size, sizes in ((8, {8}), (None, {8, 64})):
        left = replace(launch, without=(LeftOut("bcast", "mpi", "plain", size, "hung"),))
        gone = set(launch.plan) - set(left.plan)
        assert {cell.bytes for cell in gone} == sizes
        names = {(cell.operation, cell.transport, cell.form) for cell in gone}
        assert names == {("bcast", "mpi", "plain")}
        assert left.cells == launch.cells


def test_a_stored_launch_of_before_is_read_with_plain_calls() -> None:
    launch = launches(peers="mpich")[0]
    stored = launch.to_dict()
    for key in ("setting", "without"):
        del stored[key]
    stored["cells"] = [
        {key: value for key, value in cell.items() if key != "form"} for cell in stored["cells"]
    ]
    read = Launch.from_dict(stored)
    assert {cell.form for cell in read.cells} == {"plain"} and not read.spares_peers
    assert isinstance(read.cells[0], Cell)

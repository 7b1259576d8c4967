"""Contenders of workloads leave what plain calls leave, and their checks see what is wrong.

Programs on as many ranks share a launch.
"""

import importlib.util
import re
from pathlib import Path

import pytest

from experiments.implementations import step_plan
from experiments.implementations.overlapped_steps import GFLOP
from experiments.model.workloads import ALGORITHMS, FUSION, MODELLED, PUSH, WORKLOADS
from hbmcomm.costmodel import buckets
from tests.starting import MakeHosts, Start

RANKS = Path(__file__).parent / "ranks"
TORCH = importlib.util.find_spec("torch")
ENOUGH = 240.0  # seconds for several programs, beside other tests


def lines(output: str, name: str) -> list[str]:
    """What a program of ranks/several.py printed; gRPC writes lines of its own."""
    begin = f"{name}: "
    return [line[len(begin) :] for line in output.splitlines() if line.startswith(begin)]


@pytest.mark.ranks
def test_every_contender_of_two_ranks_is_right(mpirun: Start, tmp_path: Path) -> None:
    names = ("modelled_gradients", "parameter_server", "pushes", "ways")
    output = mpirun(RANKS / "several.py", 2, str(tmp_path), *names, timeout=ENOUGH).output
    assert [name for name in names if lines(output, name).count("done") != 2] == []
    for name in ("modelled_gradients", "parameter_server"):
        assert lines(output, name).count("right") == 2, name
    pushed = [line for line in lines(output, "pushes") if line.startswith("right: ")]
    assert len(pushed) == len(WORKLOADS[PUSH].contenders) - (TORCH is None)

    programs = {workload.program: name for name, workload in WORKLOADS.items()}
    ours = [name for name in programs.values() if name in FUSION]
    verdicts = {
        tuple(line.split()[:2]): line.split(maxsplit=2)[2]
        for line in lines(output, "ways")
        if line.partition(" ")[0] in ours
    }
    assert set(verdicts) == {(name, way) for name in ours for way in WORKLOADS[name].contenders}
    for (_, way), verdict in verdicts.items():
        lacks = (
            "all ranks"
            if way in ALGORITHMS
            else "(torch|grpcio|No module named 'horovod'|all ranks)"
        )
        assert verdict == "right" or re.match(f"left out: {lacks}", verdict), (way, verdict)
    assert sum(verdict == "right" for verdict in verdicts.values()) >= 12


@pytest.mark.ranks
def test_every_contender_of_four_ranks_is_right(mpirun: Start, tmp_path: Path) -> None:
    names = ("daso", "parameter_server_hosts")
    output = mpirun(RANKS / "several.py", 4, str(tmp_path), *names, timeout=ENOUGH).output
    for name in names:
        printed = lines(output, name)
        assert (printed.count("right"), printed.count("done")) == (4, 4), name


@pytest.mark.ranks
@pytest.mark.skipif(TORCH is None, reason="torch is not installed: pip install torch ninja")
@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.rare)])
def test_every_step_is_right_on_every_group_of_torch(
    mpirun: Start, tmp_path: Path, ranks: int
) -> None:
    output = mpirun(RANKS / "steps.py", ranks, str(tmp_path)).output
    assert output.split().count("right") == ranks


@pytest.mark.ranks
def test_every_contender_is_right_between_hosts(
    hosts: MakeHosts, mpirun_on: Start, tmp_path: Path
) -> None:
    made = hosts(2)
    asked = [
        *(f"allreduce_between_hosts/{algorithm}" for algorithm in ALGORITHMS),
        "overlap_mobilenet/overlapped",
        "overlap_mobilenet_device/overlapped",
    ]
    ended = mpirun_on(made, made.packed(1), RANKS / "ways.py", str(tmp_path), *asked)
    printed = ended.output.splitlines()
    for pair in asked:
        assert f"{pair.replace('/', ' ')} right" in printed


@pytest.mark.ranks
def test_a_push_of_three_ranks_is_left_out_with_the_reason(mpirun: Start) -> None:
    output = mpirun(RANKS / "pushes.py", 3, mpi="mpich").output
    assert output.count("found 3 ranks; ask for --ranks 2") == 3


def test_the_computation_of_each_network_is_known() -> None:
    assert {workload.network for workload in FUSION.values()} - {""} <= set(GFLOP)


def test_a_plan_has_the_bytes_of_its_workload_and_the_time_of_its_network() -> None:
    for name, workload in MODELLED.items():
        if not workload.network:
            continue
        layers = step_plan.layers(workload.network)
        assert sum(layer.nbytes for layer in layers) == workload.nbytes, name
        backward = sum(layer.seconds for layer in layers)
        assert backward == pytest.approx(2 * step_plan.forward_seconds(workload.network)), name
        all_buckets = buckets(layers, step_plan.BUCKET)
        assert sum(bucket.nbytes for bucket in all_buckets) == workload.nbytes, name
        assert all(bucket.nbytes >= step_plan.BUCKET for bucket in all_buckets[:-1]), name

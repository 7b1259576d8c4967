"""The contenders of fused Allreduce leave right sums, on one host and between hosts."""

import re
from pathlib import Path

import pytest

from experiments.implementations.overlapped_steps import GFLOP
from experiments.model.workloads import ALGORITHMS, FUSION, WORKLOADS
from tests.starting import MakeHosts, Start

PROGRAM = Path(__file__).parent / "ranks" / "ways.py"


def test_the_computation_of_each_network_is_known() -> None:
    assert {workload.network for workload in FUSION.values()} - {""} <= set(GFLOP)


@pytest.mark.ranks
def test_every_contender_is_right(mpirun: Start, tmp_path: Path) -> None:
    lines = mpirun(PROGRAM, 2, str(tmp_path)).output.splitlines()
    programs = {workload.program: name for name, workload in WORKLOADS.items()}
    ours = [name for name in programs.values() if name in FUSION]
    verdicts = {  # gRPC writes lines of its own
        tuple(line.split()[:2]): line.split(maxsplit=2)[2]
        for line in lines
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
def test_every_contender_is_right_between_hosts(
    hosts: MakeHosts, mpirun_on: Start, tmp_path: Path
) -> None:
    made = hosts(2)
    asked = [
        *(f"allreduce_between_hosts/{algorithm}" for algorithm in ALGORITHMS),
        "overlap_mobilenet/overlapped",
        "overlap_mobilenet_device/overlapped",
    ]
    lines = mpirun_on(made, made.packed(1), PROGRAM, str(tmp_path), *asked).output.splitlines()
    for pair in asked:
        assert f"{pair.replace('/', ' ')} right" in lines

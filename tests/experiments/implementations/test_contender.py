"""Every contender leaves the same right bytes in the same buffers, of every operation it has."""

import functools
import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest
from mpi4py import MPI

from experiments.implementations import torch_operators
from experiments.implementations.contender import ContenderMissing
from experiments.model.environment import MPIS
from tests.starting import Start

pytestmark = pytest.mark.ranks

PROGRAM = Path(__file__).parent / "ranks" / "same_bytes.py"
BUILT = 280.0
"""Seconds: the first ranks with torch compile the library's part for it, beside other tests."""
TORCH = importlib.util.find_spec("torch")
"""Torch, also of Open MPI's ranks: they run in this environment."""


@pytest.fixture(scope="module", params=[2, pytest.param(3, marks=pytest.mark.rare)])
def printed(
    request: pytest.FixtureRequest, mpirun_in: Start, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], str]:
    """printed(flavour): what so many ranks of an MPI print; each MPI runs once."""

    def of(flavour: str) -> str:
        folder = tmp_path_factory.mktemp(flavour)
        arguments = (PROGRAM, request.param, flavour, str(folder))
        ranks = mpirun_in(folder, *arguments, mpi=flavour, timeout=BUILT)
        return ranks.output

    return functools.cache(of)


@pytest.mark.parametrize(
    "flavour", [pytest.param(mpi, marks=[pytest.mark.rare] * (mpi != "openmpi")) for mpi in MPIS]
)
def test_every_contender_of_every_mpi_is_right(printed: Callable[[str], str], flavour: str) -> None:
    for line in (
        "direct: 9",
        "direct persistent: 9",
        "direct nonblocking: 9",
        "direct in place: 1",
        "mpi: 9",
        "mpi nonblocking: 9",
        "mpi in place: 1",
        "pickle: 7",
        "objects: 7",
        f"mpi persistent: {6 if flavour == 'impi' else 9}",
    ):
        assert line in printed(flavour)


def test_groups_of_torch_are_right_or_left_out_with_the_reason(
    printed: Callable[[str], str],
) -> None:
    if TORCH is None:
        for name in ("gloo", "torch", "operators", "vllm", "deepspeed"):
            assert f"{name}: torch cannot be imported" in printed("openmpi")
        return
    for line in ("gloo: 9", "torch: 9", "operators: 5", "torch in place: 1"):
        assert line in printed("openmpi")
    for package, operations in (("vllm", 3), ("deepspeed", 1)):
        if importlib.util.find_spec(package) is None:
            assert f"{package}: {package} is not installed" in printed("openmpi")
        else:
            assert f"{package}: {operations}" in printed("openmpi")
            assert f"{package} in place: 1" in printed("openmpi")


@pytest.mark.skipif(TORCH is None, reason="torch is not installed: pip install torch ninja")
def test_without_a_compiler_only_the_backend_of_this_library_is_left_out(
    mpirun: Start, tmp_path: Path
) -> None:
    unbuilt = {"CXX": "no-compiler", "TORCH_EXTENSIONS_DIR": str(tmp_path)}
    printed = mpirun(PROGRAM, 2, "openmpi", str(tmp_path), env=unbuilt).output
    assert "gloo: 9" in printed
    assert "torch: hbmcomm.torch: its C++ part for torch " in printed
    assert "is built at the first use" in printed
    assert "needs no-compiler; none was found" in printed


def test_vllm_is_left_out_for_numbers_of_ranks_that_end_it() -> None:
    with pytest.raises(ContenderMissing, match="it serves 2, 3, 4, 8 ranks, and not 1"):
        torch_operators.vllm(MPI.COMM_SELF)

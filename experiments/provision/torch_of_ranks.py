"""torch in the environment of an MPI on this machine, with the C++ part of hbmcomm.torch compiled.

Also in the running environment, if ranks run in that one.
"""

from collections.abc import Callable
from pathlib import Path

from experiments.model.checkout import ROOT
from experiments.processes.executables import captured
from experiments.provision import mpi_wheels
from experiments.provision.wheelhouse import OF_WORKLOADS, TORCH_REMEDY


def ensure(flavour: str, say: Callable[[str], None], root: Path = ROOT) -> None:
    """torch and RPC, pinned, for the ranks of an MPI; installed where they are missing.

    Without a compiler ranks leave out the backend hbm: a line says why.

    Raises:
        Missing: pip cannot have it.
    """
    mpi_wheels.add(flavour, "torch", OF_WORKLOADS, say, root, TORCH_REMEDY)
    say(f"torch: compiling hbmcomm.torch for {flavour}, where that has not been done")
    python = mpi_wheels.prefix(flavour, root) / "bin/python"
    done = captured([python, "-P", "-m", "hbmcomm.torch", "build"])
    if done.returncode:
        say(f"torch is left out for {flavour}: {done.stderr.strip()}")

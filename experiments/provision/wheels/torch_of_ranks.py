"""torch in the environment of an MPI on this machine, with the C++ part of hbmcomm.torch compiled.

Also in the running environment, if ranks run in that one.
"""

from collections.abc import Callable
from pathlib import Path

from experiments.model.checkout import ROOT
from experiments.model.errors import ExperimentsError
from experiments.processes import scratch
from experiments.processes.captured import captured
from experiments.provision.wheels import mpi
from experiments.provision.wheels.wheelhouse import OF_WORKLOADS, TORCH_REMEDY


class TorchMissing(ExperimentsError):
    """pip cannot have torch; the text holds its last lines and the one thing to do."""


def ensure(flavour: str, say: Callable[[str], None], root: Path = ROOT) -> None:
    """torch and RPC, pinned, for the ranks of an MPI; installed where they are missing.

    Without a compiler ranks leave out the backend hbm: a line says why.

    Raises:
        TorchMissing: pip cannot have it.
    """
    folder = mpi.prefix(flavour, root)
    python = folder / "bin/python"
    with scratch.locked(folder, ".torch.lock"):
        held = {name.lower() for name in mpi.distributions(folder)}
        if lacking := sorted(set(OF_WORKLOADS) - held):
            say(f"torch: installing {' and '.join(lacking)} for {flavour}")
            done = captured(mpi.install_command(python, root, *lacking))
            if done.returncode:
                lines = "\n".join(done.stderr.strip().splitlines()[-2:])
                raise TorchMissing(
                    f"torch cannot be installed for {flavour}:\n{lines}\n{TORCH_REMEDY}"
                )
        say(f"torch: compiling hbmcomm.torch for {flavour}, where that has not been done")
        done = captured([str(python), "-m", "hbmcomm.torch", "build"])
        if done.returncode:
            say(f"torch is left out for {flavour}: {done.stderr.strip()}")

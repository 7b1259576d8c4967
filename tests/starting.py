"""The types of the fixtures that start ranks and emulated hosts."""

from collections.abc import Callable
from dataclasses import dataclass

from experiments.emulation.emulated_hosts import Hosts


@dataclass(frozen=True)
class Ranks:
    """How ranks ended: the launcher's exit code and what all of them printed."""

    code: int
    output: str


Start = Callable[..., Ranks]
"""What `mpirun`, `mpirun_in` and `mpirun_on` are."""
MakeHosts = Callable[..., Hosts]
"""What `hosts` is."""
Survivors = Callable[..., dict[str, str]]
"""What `survivors` is, of tests of hbmcomm."""

"""What an emulated machine looks like, as plain frozen values; the files are description.py's.

Knows nothing of QEMU and decides nothing. Bytes, bytes per second, nanoseconds; nodes and CPUs as
the guest's kernel numbers them.
"""

from collections.abc import Collection
from dataclasses import dataclass

MIB = 2**20
MEMORY_BLOCK = 128 * MIB
"""Linux adds memory to a node in blocks of this size (x86, machines of less than 64 GiB)."""
DAX_ALIGNMENT = 2 * MIB
PAGE, PAGE_DESCRIPTION = 4096, 64
"""Bytes of a page, and of what the kernel keeps about it, on the device itself."""


@dataclass(frozen=True)
class Processor:
    """The processor that CPUID shows. Programs recognise some machines by it."""

    vendor: str
    family: int
    model: int
    name: str


@dataclass(frozen=True)
class Memory:
    """One kind of memory of the machine.

    Attributes:
        bandwidth: bytes/s in the HMAT, as the guest's kernel shows it; None without HMAT.
        latency: nanoseconds; None where it is not described.
    """

    name: str
    hbm: bool
    bandwidth: int | None = None
    latency: int | None = None


@dataclass(frozen=True)
class Node:
    """A NUMA node.

    Attributes:
        cpus: their numbers; none on a node that is only memory.
        memory_bytes: at boot; 0 where the memory is a dax device until it is brought online.
        dax_bytes: of that device; 0 without one.
        initiator: the node of the CPUs that it belongs to; its own id if it has CPUs.
    """

    id: int
    cpus: tuple[int, ...]
    memory_bytes: int
    dax_bytes: int
    initiator: int
    memory: Memory


@dataclass(frozen=True)
class Dax:
    """A device /dev/daxX.Y that becomes memory of a node when it is brought online."""

    name: str
    node: int
    given_bytes: int
    """What the machine sets apart for it."""

    @property
    def device_bytes(self) -> int:
        """What the device offers: the rest holds its label and the kernel's notes on its pages."""
        notes = self.given_bytes // PAGE * PAGE_DESCRIPTION + DAX_ALIGNMENT
        return (self.given_bytes - notes) // DAX_ALIGNMENT * DAX_ALIGNMENT

    @property
    def online_bytes(self) -> int:
        """What its node has once it is online: whole blocks only."""
        return self.device_bytes // MEMORY_BLOCK * MEMORY_BLOCK


@dataclass(frozen=True)
class Found:
    """What must be found on the machine.

    Attributes:
        hbm: the nodes that hbmcomm calls HBM.
        evidence: words of the rule that decides; hbmcomm's own, of each of these nodes.
        memkind: the nodes that memkind itself takes for MEMKIND_HBW, over all CPUs.
        memkind_differs: why these are other nodes; empty where they are the same.
    """

    hbm: tuple[int, ...]
    evidence: str
    memkind: tuple[int, ...]
    memkind_differs: str = ""


@dataclass(frozen=True)
class Description:
    """A machine that QEMU can show.

    Attributes:
        stands_for: the real machine, in words.
        processor: None: whatever the emulator likes to show.
        distances: row by row as the kernel's files of the nodes have them, dax nodes included.
        found: as it comes up.
        found_online: once every dax device is brought online; None where there is none.
    """

    name: str
    title: str
    stands_for: str
    processor: Processor | None
    sockets: int
    nodes: tuple[Node, ...]
    distances: tuple[tuple[int, ...], ...]
    found: Found
    found_online: Found | None = None

    @property
    def cpus(self) -> int:
        """The number of CPUs."""
        return sum(len(node.cpus) for node in self.nodes)

    @property
    def memory_bytes(self) -> int:
        """Memory at boot, without the dax devices."""
        return sum(node.memory_bytes for node in self.nodes)

    @property
    def cpu_nodes(self) -> tuple[Node, ...]:
        return tuple(node for node in self.nodes if node.cpus)

    @property
    def dax(self) -> tuple[Dax, ...]:
        """The devices as Linux numbers them: dax0.0, dax1.0 ..."""
        offline = (node for node in self.nodes if node.dax_bytes)
        return tuple(
            Dax(f"dax{number}.0", node.id, node.dax_bytes) for number, node in enumerate(offline)
        )

    @property
    def has_hmat(self) -> bool:
        """Whether the firmware has bandwidths and latencies: of all nodes or of none."""
        return all(node.memory.bandwidth for node in self.nodes)

    def local_hbm(self, number: int, among: Collection[int] | None = None) -> tuple[Node, ...]:
        """The HBM that belongs to the CPUs of a node; where none does, the nearest.

        Args:
            among: the nodes of it that are memory now; left out: all.
        """
        hbm = [node for node in self.nodes if node.memory.hbm]
        candidates = [node for node in hbm if among is None or node.id in among]
        own = tuple(node for node in candidates if node.initiator == number)
        distances = self.distances[number]
        least = min((distances[node.id] for node in candidates), default=0)
        return own or tuple(node for node in candidates if distances[node.id] == least)

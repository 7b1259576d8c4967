"""What an emulated machine looks like, and what a file in machines/ may say of it.

Knows nothing of QEMU. Bytes, bytes per second, nanoseconds; nodes and CPUs as the guest's kernel
numbers them.
"""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Annotated, Self

from pydantic import Field, model_validator

from experiments.model.errors import unknown
from experiments.model.validation import Flag, Form, Line, Numbers, whole

MIB, PAGE = 2**20, 2**12
MEMORY_BLOCK = 128 * MIB
"""Linux adds memory to a node in blocks of this size (x86, machines of less than 64 GiB)."""
DAX_ALIGNMENT = 2 * MIB
PAGE_DESCRIPTION = 64
"""Bytes that the kernel keeps about a page, on the device itself."""
BANDWIDTH_STEP = 128 * MIB
"""bytes/s. HMAT holds bandwidths as 16-bit multiples of a common unit, the kernel in MiB/s."""
FASTEST, SLOWEST = 8795, 2**16 - 2
"""10^9 bytes/s and ns: what 16 bits hold of that step and of 1 ns; all ones is "not reachable"."""
MOST_MIB = 2**20
"""MiB of a node: TCG's processor has addresses of 40 bits."""


class Processor(Form):
    """The processor that CPUID shows. Programs recognise some machines by it."""

    vendor: Annotated[
        str,
        Field(
            strict=True,
            pattern=r"^[A-Za-z]{12}$",
            title="CPUID's 12 letters: GenuineIntel",
        ),
    ]
    family: Annotated[int, whole(1, 270)]
    model: Annotated[int, whole(0, 255)]
    name: Annotated[
        str,
        Field(
            strict=True,
            pattern=r"^[ -+\--~]{1,47}$",
            title="ASCII: CPUID has 47 letters for it, and no comma here",
        ),
    ]


class Memory(Form):
    """One kind of memory of the machine.

    Attributes:
        gb_s: 10^9 bytes/s in the HMAT; None without HMAT.
        ns: latency there.
    """

    hbm: Flag
    gb_s: Annotated[
        float | None,
        Field(
            strict=True,
            ge=1,
            le=FASTEST,
            title=f"a number of 10^9 bytes/s, 1 to {FASTEST}, as the firmware's table holds",
        ),
    ] = None
    ns: Annotated[int | None, whole(1, SLOWEST)] = None

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.gb_s is None) != (self.ns is None):
            raise ValueError("gb_s and ns come together; add the other or drop both")
        return self


class Node(Form):
    """A NUMA node.

    Attributes:
        memory: the name of its kind of memory.
        cpus: their numbers; none on a node that is only memory.
        near: of a node without CPUs, the node of the CPUs that it belongs to.
        mib: at boot; 0 where the memory is a dax device until it is brought online.
        dax_mib: of that device; 0 without one.
    """

    id: Annotated[int, whole(0)]
    memory: Line
    cpus: Numbers = ()
    near: Annotated[int | None, whole(0)] = None
    mib: Annotated[int, whole(1, MOST_MIB)] = 0
    dax_mib: Annotated[int, whole(1, MOST_MIB)] = 0

    @model_validator(mode="after")
    def _fits_linux(self) -> Self:
        if bool(self.cpus) != (self.near is None):
            raise ValueError("give cpus = [..], or near = the node of the CPUs it belongs to")
        if bool(self.mib) == bool(self.dax_mib) or (self.dax_mib and self.cpus):
            raise ValueError("give mib, or dax_mib on a node without CPUs or online memory")
        block, size = MEMORY_BLOCK // MIB, self.mib or self.dax_mib
        if size % block:
            raise ValueError(
                f"{size} MiB; make it a multiple of {block} MiB, the blocks in which Linux takes "
                "memory"
            )
        if self.dax_mib == block:
            raise ValueError(
                f"dax_mib {block} leaves no whole block of {block} MiB beside the kernel's notes; "
                f"give {2 * block} at least"
            )
        return self

    @property
    def memory_bytes(self) -> int:
        """At boot, without a dax device."""
        return self.mib * MIB

    @property
    def initiator(self) -> int:
        """The node of the CPUs that it belongs to; its own id if it has CPUs."""
        return self.id if self.near is None else self.near


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


class Distances(Form):
    """Distances row by row as the kernel's files of the nodes have them, dax nodes included."""

    rows: Annotated[tuple[Numbers, ...], Field(title="rows, each a list of whole numbers")]


class Found(Form):
    """What must be found on the machine.

    Attributes:
        hbm: the nodes that hbmcomm calls HBM.
        evidence: words of the rule that decides; hbmcomm's own, of each of these nodes.
        memkind: the nodes that memkind itself takes for MEMKIND_HBW, over all CPUs.
        memkind_differs: why these are other nodes; empty where they are the same.
    """

    hbm: Numbers
    evidence: Line
    memkind: Numbers
    memkind_differs: Line = ""


class Machine(Form):
    """A file of machines/.

    Attributes:
        stands_for: the real machine, in words.
        processor: None: whatever the emulator likes to show.
        memory: each kind, by its name.
        found: as it comes up.
        found_online: once every dax device is brought online; None where there is none.
    """

    title: Line
    stands_for: Line
    sockets: Annotated[int, whole(1)] = 1
    processor: Processor | None = None
    memory: dict[str, Memory]
    node: Annotated[tuple[Node, ...], Field(min_length=1)]
    distances: Distances
    found: Found
    found_online: Found | None = None

    @model_validator(mode="after")
    def _memories_are_known(self) -> Self:
        for number, node in enumerate(self.node):
            if node.memory not in self.memory:
                raise ValueError(f"node {number}: {unknown('memory', node.memory, self.memory)}")
        if (self.found_online is None) != all(not node.dax_mib for node in self.node):
            raise ValueError(
                "[found_online] is for machines with a node of dax_mib, and they need it; add the "
                "one or drop the other"
            )
        return self


class Description(Machine):
    """A machine that QEMU can show; its name is that of the file."""

    name: str

    @property
    def nodes(self) -> tuple[Node, ...]:
        """In order; a file names one at a time."""
        return self.node

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
        offline = (node for node in self.nodes if node.dax_mib)
        return tuple(
            Dax(f"dax{number}.0", node.id, node.dax_mib * MIB)
            for number, node in enumerate(offline)
        )

    def bandwidth(self, node: Node) -> int | None:
        """bytes/s of a node in the HMAT, as the guest's kernel shows it; None without HMAT."""
        gb_s = self.memory[node.memory].gb_s
        return None if gb_s is None else round(gb_s * 1e9 / BANDWIDTH_STEP) * BANDWIDTH_STEP

    @property
    def has_hmat(self) -> bool:
        """Whether the firmware has bandwidths and latencies: of all nodes or of none."""
        return all(map(self.bandwidth, self.nodes))

    @property
    def hbm(self) -> tuple[Node, ...]:
        """The nodes of memory with hbm = true, online or not."""
        return tuple(node for node in self.nodes if self.memory[node.memory].hbm)

    def local_hbm(self, number: int, among: Collection[int] | None = None) -> tuple[Node, ...]:
        """The HBM that belongs to the CPUs of a node; where none does, the nearest.

        Args:
            among: the nodes of it that are memory now; left out: all.
        """
        candidates = [node for node in self.hbm if among is None or node.id in among]
        own = tuple(node for node in candidates if node.initiator == number)
        distances = self.distances.rows[number]
        least = min((distances[node.id] for node in candidates), default=0)
        return own or tuple(node for node in candidates if distances[node.id] == least)

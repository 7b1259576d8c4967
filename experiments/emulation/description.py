"""Machine descriptions: what a file in machines/ may say, and its typed, validated form.

Boots nothing and knows nothing of QEMU. A message for a typo names the file, the key and the
nearest valid name.
"""

import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, Self

from pydantic import Field, model_validator

from experiments.emulation.machine import (
    MEMORY_BLOCK,
    MIB,
    Description,
    Found,
    Memory,
    Node,
    Processor,
)
from experiments.model.environment import MACHINES, machine_names
from experiments.model.errors import SpecError, unknown
from experiments.model.validation import A_LIST, Flag, Form, Line, Number, Numbers, read, whole

BANDWIDTH_STEP = 128 * MIB
"""bytes/s. HMAT holds bandwidths as 16-bit multiples of a common unit, the kernel in MiB/s."""
FASTEST, SLOWEST = 8795, 2**16 - 2
"""10^9 bytes/s and ns: what 16 bits hold of that step and of 1 ns; all ones is "not reachable"."""
MOST_CPUS, MOST_NODES = 255, 16
"""CPUs: what q35 has without remapped interrupts. Nodes: what a check has pages for."""
MOST_MIB = 2**20
"""MiB of a node: TCG's processor has addresses of 40 bits."""
OWN = 10
"""ACPI's distance of a node from itself; all others are farther, and 255 is out of reach."""


def load(name: str) -> Description:
    """A machine by its name, or by the path of a .toml file.

    Raises:
        SpecError: naming the file, the key, and the nearest name that would be valid.
    """
    given = name.endswith(".toml")
    if not given and name not in machine_names():
        raise SpecError(unknown("emulated machine", name, machine_names()))
    path = Path(name) if given else MACHINES / f"{name}.toml"
    try:
        values = tomllib.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise SpecError(
            f"there is no file {name}; give the path of a description, or one of "
            f"{', '.join(machine_names())}"
        ) from error
    except OSError as error:
        raise SpecError(
            f"{name} cannot be read ({error.strerror}); give a file that you may read"
        ) from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise SpecError(f"{path.name} is not valid TOML: {error}; mend that line") from error
    return from_dict(values, path.stem, path.name)


class _Memory(Form):
    """[memory.NAME] of a file."""

    hbm: Flag
    gb_s: Annotated[
        float | None,
        Field(
            strict=True,
            ge=1,
            le=FASTEST,
            description=f"a number of 10^9 bytes/s, 1 to {FASTEST}, as the firmware's table holds",
        ),
    ] = None
    ns: Annotated[int | None, whole(1, SLOWEST)] = None

    @model_validator(mode="after")
    def _both_or_none(self) -> Self:
        if (self.gb_s is None) != (self.ns is None):
            raise ValueError("gb_s and ns come together; add the other or drop both")
        return self

    def made(self, name: str) -> Memory:
        """The memory, its bandwidth in bytes/s, rounded to what HMAT can hold."""
        if self.gb_s is None:
            return Memory(name, self.hbm)
        bandwidth = round(self.gb_s * 1e9 / BANDWIDTH_STEP) * BANDWIDTH_STEP
        return Memory(name, self.hbm, bandwidth, self.ns)


class _Node(Form):
    """[[node]] of a file."""

    id: Annotated[int, whole(0)]
    memory: Line
    cpus: Annotated[tuple[Number, ...] | None, A_LIST] = None
    near: Annotated[int | None, whole(0)] = None
    mib: Annotated[int | None, whole(1, MOST_MIB)] = None
    dax_mib: Annotated[int | None, whole(1, MOST_MIB)] = None

    @model_validator(mode="after")
    def _fits_linux(self) -> Self:
        if (self.cpus is None) == (self.near is None):
            raise ValueError("give cpus = [..], or near = the node of the CPUs it belongs to")
        online, device = self.mib or 0, self.dax_mib or 0
        if bool(online) == bool(device) or (device and self.cpus is not None):
            raise ValueError("give mib, or dax_mib on a node without CPUs or online memory")
        block = MEMORY_BLOCK // MIB
        if (online or device) % block:
            raise ValueError(
                f"{online or device} MiB; make it a multiple of {block} MiB, the blocks in which "
                "Linux takes memory"
            )
        if device == block:
            raise ValueError(
                f"dax_mib {device} leaves no whole block of {device} MiB beside the kernel's "
                f"notes; give {2 * device} at least"
            )
        return self

    def made(self, memories: Mapping[str, Memory]) -> Node:
        """The node, with its kind of memory."""
        return Node(
            id=self.id,
            cpus=self.cpus or (),
            memory_bytes=(self.mib or 0) * MIB,
            dax_bytes=(self.dax_mib or 0) * MIB,
            initiator=self.id if self.near is None else self.near,
            memory=memories[self.memory],
        )


class _Processor(Form):
    """[processor] of a file."""

    vendor: Annotated[
        str,
        Field(
            strict=True,
            pattern=r"^[A-Za-z]{12}$",
            description="CPUID's 12 letters: GenuineIntel",
        ),
    ]
    family: Annotated[int, whole(1, 270)]
    model: Annotated[int, whole(0, 255)]
    name: Annotated[
        str,
        Field(
            strict=True,
            pattern=r"^[ -+\--~]{1,47}$",
            description="ASCII: CPUID has 47 letters for it, and no comma here",
        ),
    ]


class _Distances(Form):
    """[distances] of a file."""

    rows: Annotated[tuple[Numbers, ...], Field(description="rows, each a list of whole numbers")]


class _Found(Form):
    """[found] of a file."""

    hbm: Numbers
    evidence: Line
    memkind: Numbers
    memkind_differs: Line = ""


class _Machine(Form):
    """A file of machines/."""

    title: Line
    stands_for: Line
    sockets: Annotated[int, whole(1)] = 1
    processor: _Processor | None = None
    memory: dict[str, _Memory]
    node: Annotated[tuple[_Node, ...], Field(min_length=1)]
    distances: _Distances
    found: _Found
    found_online: _Found | None = None

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


def from_dict(values: Mapping[str, Any], name: str, source: str) -> Description:
    """The validated description of what a file says; SpecError as load()."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
        raise SpecError(
            f"{source}: {name!r} becomes the guest's host name; name the file with small letters, "
            "digits and hyphens"
        )
    given = read(_Machine, values, source)
    memories = {key: each.made(key) for key, each in given.memory.items()}
    nodes = tuple(each.made(memories) for each in given.node)
    _check_nodes(nodes, source)
    _check_distances(given.distances.rows, len(nodes), f"{source}, [distances]")
    found = Found(**dict(given.found))
    found_online = Found(**dict(given.found_online)) if given.found_online else None
    _check_found(found, nodes, False, f"{source}, [found]")
    if found_online:
        _check_found(found_online, nodes, True, f"{source}, [found_online]")
    description = Description(
        name=name,
        title=given.title,
        stands_for=given.stands_for,
        processor=Processor(**dict(given.processor)) if given.processor else None,
        sockets=given.sockets,
        nodes=nodes,
        distances=given.distances.rows,
        found=found,
        found_online=found_online,
    )
    if description.cpus % description.sockets:
        raise SpecError(
            f"{source}: {description.cpus} CPUs cannot be shared out evenly over "
            f"{description.sockets} sockets; change the one or the other"
        )
    if not description.has_hmat and any(node.memory.bandwidth for node in nodes):
        raise SpecError(
            f"{source}: gb_s and ns are given for some memories only; firmware has an HMAT for all "
            "nodes or for none"
        )
    return description


def _check_nodes(nodes: Sequence[Node], source: str) -> None:
    """Nodes are numbered in order; every CPU is on one of them."""
    numbers = [node.id for node in nodes]
    if not _count_from_0(numbers):
        raise SpecError(f"{source}: the nodes are {_listed(numbers)}; number them from 0, in order")
    cpus = [cpu for node in nodes for cpu in node.cpus]
    if not _count_from_0(cpus):
        raise SpecError(
            f"{source}: the nodes' CPUs are {_listed(cpus)}; "
            "number them from 0, in order, each on one node"
        )
    if len(cpus) > MOST_CPUS or len(nodes) > MOST_NODES:
        raise SpecError(
            f"{source}: {len(cpus)} CPUs and {len(nodes)} nodes; an emulated machine has "
            f"{MOST_CPUS} and {MOST_NODES} at most"
        )
    with_cpus = [node.id for node in nodes if node.cpus]
    if not with_cpus:
        raise SpecError(f"{source}: no node has CPUs; give cpus = [0] to one")
    for node in nodes:
        if node.initiator not in with_cpus:
            raise SpecError(
                f"{source}: node {node.id} is near node {node.initiator}, and the nodes with CPUs "
                f"are {_listed(with_cpus)}; name one of these"
            )
    if not _count_from_0(with_cpus):
        raise SpecError(
            f"{source}: Linux numbers the nodes with CPUs first, and they are "
            f"{_listed(with_cpus)}; put the nodes without CPUs behind them"
        )


def _count_from_0(numbers: Sequence[int]) -> bool:
    """Whether these are 0, 1, 2 ... in order."""
    return list(numbers) == list(range(len(numbers)))


def _listed(numbers: Sequence[int]) -> str:
    return ", ".join(map(str, numbers))


def _check_distances(rows: Sequence[Sequence[int]], count: int, place: str) -> None:
    if len(rows) != count or any(len(row) != count for row in rows):
        raise SpecError(f"{place}: write {count} rows of {count}, one for each node")
    for one, row in enumerate(rows):
        for other, distance in enumerate(row):
            fits = distance == OWN if one == other else OWN < distance < 255
            if not fits or distance != rows[other][one]:
                raise SpecError(
                    f"{place}: {distance} from node {one} to node {other}, {rows[other][one]} "
                    f"back; a node is at {OWN} from itself, others at 11 to 254, alike both ways"
                )


def _check_found(found: Found, nodes: Sequence[Node], online: bool, place: str) -> None:
    """What must be found, which the memories with hbm = true decide as well.

    Args:
        online: the dax devices are memory by then.
    """
    for key, listed in (("hbm", found.hbm), ("memkind", found.memkind)):
        strange = sorted(set(listed) - set(range(len(nodes))))
        if strange:
            raise SpecError(f"{place}: node {strange[0]} is none of the nodes 0-{len(nodes) - 1}")
        if list(listed) != sorted(set(listed)):
            raise SpecError(f"{place}: {key} {list(listed)} must name each node once, in order")
    hbm = tuple(node.id for node in nodes if node.memory.hbm and (node.memory_bytes or online))
    if found.hbm != hbm:
        raise SpecError(
            f"{place}: hbm {list(found.hbm)}, and the nodes of memory with hbm = true are "
            f"{list(hbm)}; change the one or the other"
        )
    if (found.hbm == found.memkind) != (not found.memkind_differs):
        raise SpecError(
            f"{place}: memkind finds nodes {list(found.memkind)} and hbmcomm {list(found.hbm)}; "
            "say in memkind_differs why they differ, and only where they do"
        )

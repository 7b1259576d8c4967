"""Reads machine descriptions, and refuses machines that Linux or QEMU cannot have.

Boots nothing. A message for a typo names the file, the key and the
nearest valid name.
"""

import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from experiments.emulation.machine import Description, Found, Machine, Node
from experiments.environments import profiles
from experiments.environments.profiles import CONTAINER_USER
from experiments.model.environment import MACHINES, machine_names
from experiments.model.errors import SpecError, unknown
from experiments.model.validation import read, toml

GUEST_MEMLOCK = 8 * 2**20  # bytes: Linux's default since 5.16 (MLOCK_LIMIT)

MOST_CPUS, MOST_NODES = 255, 16
"""CPUs: what q35 has without remapped interrupts. Nodes: what a check has pages for."""
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
        values = toml(path, path.name)
    except FileNotFoundError as error:
        raise SpecError(
            f"there is no file {name}; give the path of a description, or one of "
            f"{', '.join(machine_names())}"
        ) from error
    except OSError as error:
        raise SpecError(
            f"{name} cannot be read ({error.strerror}); give a file that you may read"
        ) from error
    return from_dict(values, path.stem, path.name)


def from_dict(values: Mapping[str, Any], name: str, source: str) -> Description:
    """The validated description of what a file says; SpecError as load()."""
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
        raise SpecError(
            f"{source}: {name!r} becomes the guest's host name; name the file with small letters, "
            "digits and hyphens"
        )
    description = Description(name=name, **dict(read(Machine, values, source)))
    _check_nodes(description.nodes, source)
    _check_distances(description.distances.rows, len(description.nodes), f"{source}, [distances]")
    _check_found(description, description.found, False, f"{source}, [found]")
    if description.found_online:
        _check_found(description, description.found_online, True, f"{source}, [found_online]")
    if description.cpus % description.sockets:
        raise SpecError(
            f"{source}: {description.cpus} CPUs cannot be shared out evenly over "
            f"{description.sockets} sockets; change the one or the other"
        )
    if not description.has_hmat and any(map(description.bandwidth, description.nodes)):
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


def _check_found(machine: Description, wanted: Found, online: bool, place: str) -> None:
    """What must be found, which the memories with hbm = true decide as well.

    Args:
        online: the dax devices are memory by then.
    """
    nodes = machine.nodes
    for key, listed in (("hbm", wanted.hbm), ("memkind", wanted.memkind)):
        strange = sorted(set(listed) - set(range(len(nodes))))
        if strange:
            raise SpecError(f"{place}: node {strange[0]} is none of the nodes 0-{len(nodes) - 1}")
        if list(listed) != sorted(set(listed)):
            raise SpecError(f"{place}: {key} {list(listed)} must name each node once, in order")
    hbm = tuple(node.id for node in machine.hbm if node.memory_bytes or online)
    if wanted.hbm != hbm:
        raise SpecError(
            f"{place}: hbm {list(wanted.hbm)}, and the nodes of memory with hbm = true are "
            f"{list(hbm)}; change the one or the other"
        )
    if (wanted.hbm == wanted.memkind) != (not wanted.memkind_differs):
        raise SpecError(
            f"{place}: memkind finds nodes {list(wanted.memkind)} and hbmcomm {list(wanted.hbm)}; "
            "say in memkind_differs why they differ, and only where they do"
        )


def emulated(described: Description) -> profiles.Machine:
    """All of an emulated machine as it comes up, to an ordinary user of its guest.

    Its kernel's own limit of locked memory holds there: nothing in the guest sets another.
    """
    return profiles.Machine(
        cpus=",".join(str(cpu) for node in described.nodes for cpu in node.cpus),
        mems=",".join(str(node.id) for node in described.nodes if node.memory_bytes),
        dax=tuple(f"/dev/{device.name}" for device in described.dax),
        uid=CONTAINER_USER,
        gid=CONTAINER_USER,
        memlock=GUEST_MEMLOCK,
    )

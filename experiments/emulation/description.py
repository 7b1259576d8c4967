"""Machine descriptions: what a file in machines/ may say, and its typed, validated form.

Boots nothing and knows nothing of QEMU. A typo is answered with the file, the key and the nearest
valid name.
"""

import re
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import Any

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
from experiments.model.toml_validation import SpecError, unknown

__all__ = ["Description", "from_dict", "load"]

BANDWIDTH_STEP = 128 * MIB
"""bytes/s. HMAT holds bandwidths as 16-bit multiples of a common unit, the kernel in MiB/s."""
FASTEST, SLOWEST = 8795, 2**16 - 2
"""10^9 bytes/s and ns: what 16 bits hold of that step and of 1 ns; all ones is "not reachable"."""
MOST_CPUS, MOST_NODES = 255, 16
"""Of CPUs: what q35 has without remapped interrupts. Of nodes: what a check has pages for."""
MOST_MIB = 2**20
"""Of a node: the 40 bits of an address that TCG's processor has."""
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


def from_dict(values: Mapping[str, Any], name: str, source: str) -> Description:
    """The validated description of what a file says; SpecError as load()."""
    _keys(
        values,
        ("title", "stands_for", "memory", "node", "distances", "found"),
        ("sockets", "processor", "found_online"),
        source,
    )
    if not re.fullmatch(r"[a-z0-9][a-z0-9-]{0,62}", name):
        raise SpecError(
            f"{source}: {name!r} becomes the guest's host name; name the file with small letters, "
            "digits and hyphens"
        )
    memories = _memories(values["memory"], source)
    nodes = _nodes(values["node"], memories, source)
    found_online = values.get("found_online")
    if (found_online is None) != all(not node.dax_bytes for node in nodes):
        raise SpecError(
            f"{source}: [found_online] is for machines with a node of dax_mib, and they need it; "
            "add the one or drop the other"
        )
    description = Description(
        name=name,
        title=_text(values, "title", source),
        stands_for=_text(values, "stands_for", source),
        processor=_processor(values["processor"], source) if "processor" in values else None,
        sockets=_whole(values, "sockets", source, 1) if "sockets" in values else 1,
        nodes=nodes,
        distances=_distances(values["distances"], len(nodes), source),
        found=_found(values["found"], nodes, False, f"{source}, [found]"),
        found_online=(
            None
            if found_online is None
            else _found(found_online, nodes, True, f"{source}, [found_online]")
        ),
    )
    if description.cpus % description.sockets:
        raise SpecError(
            f"{source}: {description.cpus} CPUs cannot be shared out evenly over "
            f"{description.sockets} sockets; change the one or the other"
        )
    if not description.has_hmat and description.bandwidths:
        raise SpecError(
            f"{source}: gb_s and ns are given for some memories only; firmware has an HMAT for all "
            "nodes or for none"
        )
    return description


def _memories(table: object, source: str) -> dict[str, Memory]:
    found = {}
    for name, values in _table(table, f"{source}, [memory]").items():
        place = f"{source}, [memory.{name}]"
        values = _table(values, place)
        _keys(values, ("hbm",), ("gb_s", "ns"), place)
        if not isinstance(values["hbm"], bool):
            raise SpecError(f"{place}: hbm {values['hbm']!r} must be true or false")
        if ("gb_s" in values) != ("ns" in values):
            raise SpecError(f"{place}: gb_s and ns come together; add the other or drop both")
        told = "gb_s" in values
        found[name] = Memory(
            name=name,
            hbm=values["hbm"],
            bandwidth=_bandwidth(values["gb_s"], place) if told else None,
            latency=_whole(values, "ns", place, 1, SLOWEST) if told else None,
        )
    return found


def _bandwidth(gb_s: object, place: str) -> int:
    """bytes/s, rounded to what HMAT can hold."""
    number = gb_s if isinstance(gb_s, int | float) and not isinstance(gb_s, bool) else 0
    if not 1 <= number <= FASTEST:  # nor does nan pass, nor infinity
        raise SpecError(
            f"{place}: gb_s {gb_s!r} must be a number of 10^9 bytes/s, 1 to {FASTEST}, what the "
            "firmware's table holds"
        )
    return round(number * 1e9 / BANDWIDTH_STEP) * BANDWIDTH_STEP


def _nodes(listed: object, memories: Mapping[str, Memory], source: str) -> tuple[Node, ...]:
    """The nodes, numbered as they stand; every CPU is on one of them."""
    if not isinstance(listed, list) or not listed:
        raise SpecError(f"{source}: node must be a list of tables, each [[node]]; found {listed!r}")
    nodes = tuple(_node(values, memories, source) for values in listed)
    if [node.id for node in nodes] != list(range(len(nodes))):
        raise SpecError(
            f"{source}: the nodes are {', '.join(str(node.id) for node in nodes)}; "
            "number them from 0, in order"
        )
    cpus = [cpu for node in nodes for cpu in node.cpus]
    if cpus != list(range(len(cpus))):
        raise SpecError(
            f"{source}: the nodes' CPUs are {', '.join(map(str, cpus)) or 'none'}; "
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
                f"are {', '.join(map(str, with_cpus))}; name one of these"
            )
    if with_cpus != list(range(len(with_cpus))):
        raise SpecError(
            f"{source}: Linux numbers the nodes with CPUs first, and they are "
            f"{', '.join(map(str, with_cpus))}; put the nodes without CPUs behind them"
        )
    return nodes


def _node(values: object, memories: Mapping[str, Memory], source: str) -> Node:
    values = _table(values, f"{source}, [[node]]")
    _keys(values, ("id", "memory"), ("cpus", "near", "mib", "dax_mib"), f"{source}, [[node]]")
    number = _whole(values, "id", f"{source}, [[node]]", 0)
    place = f"{source}, node {number}"
    if ("cpus" in values) == ("near" in values):
        raise SpecError(f"{place}: give cpus = [..], or near = the node whose CPUs it belongs to")
    if ("mib" in values) == ("dax_mib" in values) or {"cpus", "dax_mib"} <= values.keys():
        raise SpecError(
            f"{place}: give mib, or dax_mib on a node without CPUs whose memory is not online yet"
        )
    memory = _text(values, "memory", place)
    if memory not in memories:
        raise SpecError(f"{place}: {unknown('memory', memory, memories)}")
    size = _whole(values, "mib" if "mib" in values else "dax_mib", place, 1, MOST_MIB) * MIB
    if size % MEMORY_BLOCK:
        raise SpecError(
            f"{place}: {size // MIB} MiB; make it a multiple of {MEMORY_BLOCK // MIB} MiB, the "
            "blocks in which Linux takes memory"
        )
    if "dax_mib" in values and size == MEMORY_BLOCK:
        raise SpecError(
            f"{place}: dax_mib {size // MIB} leaves no whole block of {size // MIB} MiB beside the "
            f"kernel's notes; give {2 * size // MIB} at least"
        )
    return Node(
        id=number,
        cpus=_numbers(values.get("cpus", []), "cpus", place),
        memory_bytes=size if "mib" in values else 0,
        dax_bytes=0 if "mib" in values else size,
        initiator=number if "cpus" in values else _whole(values, "near", place, 0),
        memory=memories[memory],
    )


def _processor(values: object, source: str) -> Processor:
    place = f"{source}, [processor]"
    values = _table(values, place)
    _keys(values, ("vendor", "family", "model", "name"), (), place)
    name = _text(values, "name", place)
    if len(name) > 47 or "," in name or not name.isascii():
        raise SpecError(
            f"{place}: name {name!r}; CPUID has 47 letters for it, and no comma here; "
            "write it in ASCII"
        )
    vendor = _text(values, "vendor", place)
    if not re.fullmatch(r"[A-Za-z]{12}", vendor):
        raise SpecError(f"{place}: vendor {vendor!r} must be CPUID's 12 letters: GenuineIntel")
    return Processor(
        vendor=vendor,
        family=_whole(values, "family", place, 1, 270),
        model=_whole(values, "model", place, 0, 255),
        name=name,
    )


def _distances(values: object, count: int, source: str) -> tuple[tuple[int, ...], ...]:
    place = f"{source}, [distances]"
    values = _table(values, place)
    _keys(values, ("rows",), (), place)
    listed = values["rows"] if isinstance(values["rows"], list) else []
    rows = tuple(_numbers(row, "rows", place) for row in listed)
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
    return rows


def _found(values: object, nodes: tuple[Node, ...], online: bool, place: str) -> Found:
    """What must be found, which the memories with hbm = true decide as well.

    Args:
        online: the dax devices are memory by then.
    """
    values = _table(values, place)
    _keys(values, ("hbm", "evidence", "memkind"), ("memkind_differs",), place)
    found = Found(
        hbm=_numbers(values["hbm"], "hbm", place),
        evidence=_text(values, "evidence", place),
        memkind=_numbers(values["memkind"], "memkind", place),
        memkind_differs=(
            _text(values, "memkind_differs", place) if "memkind_differs" in values else ""
        ),
    )
    for key, listed in (("hbm", found.hbm), ("memkind", found.memkind)):
        strange = sorted(set(listed) - set(range(len(nodes))))
        if strange:
            raise SpecError(f"{place}: node {strange[0]} is none of the nodes 0-{len(nodes) - 1}")
        if list(listed) != sorted(set(listed)):
            raise SpecError(f"{place}: {key} {list(listed)} must name each node once, in order")
    hbm = tuple(node.id for node in nodes if node.is_hbm and (node.memory_bytes or online))
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
    return found


def _table(value: object, place: str) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise SpecError(f"{place}: must be a table; found {value!r}")
    return value


def _keys(
    table: Mapping[str, Any], needed: tuple[str, ...], others: tuple[str, ...], place: str
) -> None:
    """Refuse a key that is not known, and a needed one that is missing."""
    for key in table:
        if key not in (*needed, *others):
            raise SpecError(f"{place}: {unknown('key', key, (*needed, *others))}")
    for key in needed:
        if key not in table:
            raise SpecError(f"{place}: {key} is missing; see the others in machines/ for its form")


def _text(table: Mapping[str, Any], key: str, place: str) -> str:
    if not isinstance(table[key], str) or not table[key] or not table[key].isprintable():
        raise SpecError(f"{place}: {key} {table[key]!r} must be a line of text")
    return str(table[key])


def _whole(
    table: Mapping[str, Any], key: str, place: str, least: int, most: int | None = None
) -> int:
    value = table[key]
    if type(value) is not int or value < least or (most is not None and value > most):
        limits = f"{least} or more" if most is None else f"{least} to {most}"
        raise SpecError(f"{place}: {key} {value!r} must be a whole number, {limits}")
    return value


def _numbers(value: object, key: str, place: str) -> tuple[int, ...]:
    if not isinstance(value, list) or any(type(item) is not int or item < 0 for item in value):
        raise SpecError(f"{place}: {key} {value!r} must be a list of whole numbers")
    return tuple(value)

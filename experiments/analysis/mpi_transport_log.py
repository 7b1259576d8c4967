"""Which transports an MPI chose in a launch, by its messages in the launch's log. Pure.

environments/mpiexec.py turns the messages on; machine/datapath.py asks for what they lack. Each MPI
has its own messages; what is read from them has the same keys for all.
"""

import re
from collections.abc import Iterable, Mapping
from typing import Any

SHARED_MEMORY, SINGLE_COPY, NETWORK, SAID = "shared memory", "single copy", "network", "said"
NONE = "none"
NOT_TOLD = "not told"
_NO_ROUTE = ("self", "n/a", "")
_IN_MEMORY = ("sm", "posix", "sysv", "xpmem", "knem", "cma")
_COPIERS = ("cma", "xpmem", "knem")
"""UCX's lanes that copy straight from a neighbour's memory; the others carry the messages."""

_Ways = tuple[set[str], set[str], list[str]]
"""Transports through shared memory, those over a network, and the words that name them."""


def chosen(path: Mapping[str, Any], log: str) -> dict[str, str]:
    """Which way messages took in a launch.

    Args:
        path: the launch's "datapath" as the ranks wrote it; "told" is datapath.report().
        log: what the launch wrote to its output.

    Returns:
        SHARED_MEMORY: the transport between ranks of what the MPI believes to be one node;
        SINGLE_COPY: "CMA", "CMA from 1 MiB", or "none"; NETWORK: the transport between nodes;
        SAID: the MPI's own words. "none" for a way that no two ranks use, NOT_TOLD without words.
    """
    facts = path.get("told", {})
    readers = {"Open MPI": _open_mpi, "MPICH": _mpich, "Intel MPI": _intel}
    read = readers.get(facts.get("library", ""))
    memory, network, words = read(facts, log) if read else (set(), set(), [])
    unknown = not words and facts.get("ranks") != "1"
    return {
        SHARED_MEMORY: NOT_TOLD if unknown else _listed(memory),
        SINGLE_COPY: _single_copy(path, facts),
        NETWORK: NOT_TOLD if unknown else _listed(network),
        SAID: "; ".join(words) or NOT_TOLD,
    }


def added(environment: Mapping[str, Any], log: str) -> dict[str, Any]:
    """A launch's "environment" with what was chosen; as it is where its ranks asked nothing."""
    path = environment.get("datapath", {})
    if "told" not in path:
        return dict(environment)
    return {**environment, "datapath": {**path, "chosen": chosen(path, log)}}


def _single_copy(path: Mapping[str, Any], facts: Mapping[str, str]) -> str:
    """By what a message showed, never by what the MPI means to do."""
    copies = facts.get("copies", "")
    if "one" not in copies or "not tried" in copies:
        return NONE if copies == "two" else NOT_TOLD
    means = "CMA" if path.get("cma") == "works" else "by other means than CMA"
    sizes = [part.partition(": ")[0] for part in copies.split("; ") if part.endswith(": one")]
    return f"{means} from {sizes[0]}" if sizes else means


def _open_mpi(facts: Mapping[str, str], log: str) -> _Ways:
    memory: set[str] = set()
    network: set[str] = set()
    summary = re.findall(r"^ *((?:on|off)-host: +(.*?)) *$", log, re.MULTILINE)
    for _, line in summary:
        for name, lanes in _connections(line):
            for lane in lanes or [name]:
                text = f"UCX {lane}" if name == "ucx" and lanes else lane
                (memory if lane in _IN_MEMORY else network).add(text)
    why = re.search(r"mca_smsc_\w+: can not proceed\. (.*?)\.? PID", log)
    words = [" ".join(line.split()) for line, _ in summary]
    return memory, network, words + ([why[1]] if why else [])


def _connections(line: str) -> Iterable[tuple[str, list[str]]]:
    """(component, its lanes) of "all connections are sm" or "... are ucx=posix;memory,tcp;eth0"."""
    for part in re.split(r"connections are ", line)[1:]:
        for name, _, lanes in re.findall(r"([\w/]+)(=(\S+))?", part.split(" ")[0]):
            if name not in _NO_ROUTE:
                yield name, [lane.partition(";")[0] for lane in lanes.split(",") if lane]


def _mpich(facts: Mapping[str, str], log: str) -> _Ways:
    memory: set[str] = set()
    network: set[str] = set()
    words = [f"{facts['ranks']} ranks on {facts['nodes']} node{'s' * (facts['nodes'] != '1')}"]
    if facts["nodes"] != facts["ranks"]:
        memory.add("posix")
    if facts["nodes"] == "1":  # its UCX makes lanes all the same, and nothing takes them
        return memory, network, words
    lanes = set(re.findall(r"UCX +INFO +\S+ ((?:intra|inter)-node) cfg#\d+ tag\((.*?)\)", log))
    for where, tagged in sorted(lanes):
        words.append(f"{where} tag({tagged})")
        for name, _, device in (lane.partition("/") for lane in tagged.split()):
            if name not in _IN_MEMORY:
                network.add(f"UCX {name} over {device}")
            elif name not in _COPIERS:
                memory.add(f"UCX {name}")
    for provider in set(re.findall(r"^libfabric provider: (.*?)(?: - .*)?$", log, re.MULTILINE)):
        words.append(f"libfabric provider: {provider}")
        network.add(f"libfabric {provider}")
    return memory, network, words if words[1:] else []


def _intel(facts: Mapping[str, str], log: str) -> _Ways:
    loaded = re.search(r"(tuning_\w+?_(shm-ofi|shm|ofi)\.dat)", log)
    asked = re.search(r"I_MPI_FABRICS=(\S+)", log)
    if loaded is None and asked is None:
        return set(), set(), []
    fabrics = loaded[2] if loaded else asked[1] if asked else ""
    words = [loaded[1]] if loaded else [f"I_MPI_FABRICS={fabrics}"]
    memory = {"shm"} if "shm" in fabrics and facts["nodes"] != facts["ranks"] else set()
    network: set[str] = set()
    provider = re.search(r"MPI startup\(\): libfabric provider: (.*?) *$", log, re.MULTILINE)
    if provider and (facts["nodes"] != "1" or "shm" not in fabrics):
        nics = re.findall(r"MPI startup\(\): \d+ +\d+ +(\S+) *$", log, re.MULTILINE)
        network.add(" over ".join([f"libfabric {provider[1]}", *sorted(set(nics))[:1]]))
    return memory, network, words + ([f"libfabric provider: {provider[1]}"] if provider else [])


def _listed(names: set[str]) -> str:
    return ", ".join(sorted(names)) or NONE

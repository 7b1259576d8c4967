"""What this machine is, and what its kernel is set to and counts. Reads; knows nothing of MPI.

A collector returns "not found" where the machine has no answer.
"""

import os
import platform
import re
import time
from pathlib import Path
from typing import Any, NamedTuple

import hbmcomm
from experiments.model.environment import NOT_EMULATED

CPU = Path("/sys/devices/system/cpu")
DMI = Path("/sys/class/dmi/id")
BOOT = Path("/proc/sys/kernel/random/boot_id")
NETWORK_COUNTERS = Path("/proc/self/net/dev")
RECEIVED, SENT = 0, 8
"""Their places in a line of NETWORK_COUNTERS."""
OURS = "hbmcomm"  # the vendor that an emulated machine of this project names in its firmware
NOT_FOUND = "not found"
SETTINGS = {
    "frequency_driver": CPU / "cpu0/cpufreq/scaling_driver",
    "turbo_off": CPU / "intel_pstate/no_turbo",
    "boost": CPU / "cpufreq/boost",
    "thp": Path("/sys/kernel/mm/transparent_hugepage/enabled"),
    "thp_shmem": Path("/sys/kernel/mm/transparent_hugepage/shmem_enabled"),
    "numa_balancing": Path("/proc/sys/kernel/numa_balancing"),
    "smt": CPU / "smt/active",
    "clock": Path("/sys/devices/system/clocksource/clocksource0/current_clocksource"),
    "load": Path("/proc/loadavg"),
}


KERNEL_OPTIONS = (
    *("mitigations", "nopti", "pti", "nospectre_v2", "spectre_v2", "isolcpus", "nohz_full"),
    *("rcu_nocbs", "irqaffinity", "nosmt", "maxcpus", "idle", "processor.max_cstate"),
    *("intel_idle.max_cstate", "intel_pstate", "amd_pstate", "cpufreq.default_governor"),
    *("cpuidle_haltpoll.force", "transparent_hugepage", "hugepages", "hugepagesz"),
    *("default_hugepagesz", "numa_balancing", "numa", "memmap", "efi", "efi_fake_mem", "mem"),
    *("preempt", "clocksource", "tsc", "cgroup_disable", "psi"),
)


class Traffic(NamedTuple):
    """Bytes with the headers of the Ethernet, since a device is up or between two readings."""

    sent: int = 0
    received: int = 0

    def since(self, before: "Traffic") -> "Traffic":
        """What was carried after an earlier reading."""
        return Traffic(self.sent - before.sent, self.received - before.received)

    def plus(self, other: "Traffic") -> "Traffic":
        """The sum of two."""
        return Traffic(self.sent + other.sent, self.received + other.received)


def traffic_by_device(counters: Path = NETWORK_COUNTERS) -> dict[str, Traffic]:
    """What each network device has carried, by its name; net/dev shows those of a process."""
    by_device = {}
    for line in counters.read_text("ascii").splitlines():
        name, colon, values = line.strip().partition(":")
        if colon:
            words = values.split()
            by_device[name] = Traffic(int(words[SENT]), int(words[RECEIVED]))
    return by_device


def read(path: Path) -> str:
    """A small file's text, or "not found"."""
    try:
        return path.read_text(encoding="utf-8", errors="replace").strip()
    except OSError:
        return NOT_FOUND


def kernel() -> str:
    """What no other kernel has, and this one until it boots again.

    Ranks under one kernel share its CPUs and process numbers. Host names do not show it: containers
    of one machine may each have their own, and so have emulated hosts.
    """
    return read(BOOT)


def status(path: Path = Path("/proc/self/status")) -> dict[str, str]:
    """/proc/self/status as a table."""
    lines = (line.partition(":") for line in read(path).splitlines())
    return {key: value.strip() for key, _, value in lines}


def machine() -> dict[str, str]:
    """Kernel, processor and the settings that move a benchmark."""
    cpuinfo = read(Path("/proc/cpuinfo"))
    return {
        "kernel": platform.release(),
        "kernel_build": platform.version(),
        "architecture": platform.machine(),
        "cpu": _first(r"model name\s*:\s*(.*)", cpuinfo),
        "microcode": _first(r"microcode\s*:\s*(.*)", cpuinfo),
        "virtual": "yes" if re.search(r"^flags.*\bhypervisor\b", cpuinfo, re.M) else "no",
        "emulated": emulated(),
        "cpus_online": read(CPU / "online"),
        "governor": governors(),
        "kernel_options": kernel_options(read(Path("/proc/cmdline"))),
        "last_level_cache_bytes": str(last_level_cache()),
        "memory_total": _first(r"MemTotal:\s*(.*)", read(Path("/proc/meminfo"))),
    } | {name: read(path) for name, path in SETTINGS.items()}


def identity() -> dict[str, str]:
    """The facts that stay the same on one machine with one kernel."""
    every = machine()
    return {key: every[key] for key in ("kernel", "kernel_build", "architecture", "cpu")}


def emulated(dmi: Path = DMI) -> str:
    """The emulated machine of ours that this is, and how it is run: "knl-snc4-flat (tcg)"; or "no".

    Times on one mean nothing. Its firmware names it (SMBIOS), so that its containers know as well.
    """
    vendor, name, version = (
        read(dmi / part) for part in ("sys_vendor", "product_name", "product_version")
    )
    return f"{name} ({version})" if vendor == OURS else NOT_EMULATED


def kernel_options(command_line: str) -> str:
    """Options of the kernel's command line that may change a benchmark; others are not stored."""
    words = [word for word in command_line.split() if word.split("=")[0] in KERNEL_OPTIONS]
    return " ".join(words) or "none of note"


def governors() -> str:
    """The frequency governors of all CPUs, each named once."""
    governors = {read(path) for path in CPU.glob("cpu[0-9]*/cpufreq/scaling_governor")}
    return ", ".join(sorted(governors)) or NOT_FOUND


def last_level_cache() -> int:
    """Bytes of the largest cache that CPU 0 sees; 32 MiB where sysfs has no size."""
    sizes = [
        int(size[:-1]) * {"K": 2**10, "M": 2**20}[size[-1]]
        for path in CPU.glob("cpu0/cache/index*/size")
        if (size := read(path)) and size[-1] in "KM"
    ]
    return max(sizes, default=32 * 2**20)


def copy_rate(size: int = 32 * 2**20) -> float:
    """Bytes per second that one core copies: the best of three copies past the first touch."""
    source, target = bytearray(size), bytearray(size)
    seconds = []
    for _ in range(4):
        began = time.perf_counter()
        target[:] = source
        seconds.append(time.perf_counter() - began)
    return size / min(seconds[1:])


def available_memory() -> int:
    """Bytes that can be allocated without swapping, as the kernel estimates."""
    return int(_first(r"MemAvailable:\s*(\d+)", read(Path("/proc/meminfo")))) * 1024


def namespaces() -> dict[str, str]:
    """Identity of each namespace; processes with equal values share it."""
    identities = {}
    for name in ("ipc", "mnt", "net", "pid", "user", "uts"):
        try:
            identities[name] = str(Path(f"/proc/self/ns/{name}").readlink())
        except OSError:
            identities[name] = NOT_FOUND
    return identities


def shm_bytes(path: str = "/dev/shm") -> str:
    """Size of the shared-memory file system."""
    try:
        stats = os.statvfs(path)
    except OSError:
        return NOT_FOUND
    return str(stats.f_blocks * stats.f_frsize)


def _first(pattern: str, text: str) -> str:
    match = re.search(pattern, text)
    return match[1].strip() if match else NOT_FOUND


def parse_list(text: str) -> set[int]:
    """The numbers of a list in the kernel's format: "0-3,8"."""
    numbers: set[int] = set()
    for part in filter(None, text.split(",")):
        first, _, last = part.partition("-")
        numbers.update(range(int(first), int(last or first) + 1))
    return numbers


def siblings(cpu: int, cpus: Path = CPU) -> set[int]:
    """The hardware threads of a CPU's core, or the CPU alone where sysfs has no list."""
    text = read(cpus / f"cpu{cpu}/topology/thread_siblings_list")
    return {cpu} if text == NOT_FOUND else parse_list(text)


UNCHOSEN = {"default", "local"}
"""Policies of memory without a choice of nodes, as the kernel prints them."""


def memory_policy(maps: Path = Path("/proc/self/numa_maps")) -> str:
    """The policies that choose nodes for memory of this process: "bind:8", "default" for none."""
    if (text := read(maps)) == NOT_FOUND:
        return text
    chosen = {line.split()[1] for line in text.splitlines()} - UNCHOSEN
    return ", ".join(sorted(chosen)) or "default"


KEPT = ("id", "total_bytes", "read_bandwidth", "is_hbm")


def nodes(sysfs: str = "/sys", procfs: str = "/proc") -> dict[str, Any]:
    """As rank 0 sees them, all of the machine's, whatever a cpuset allows.

    Returns:
        nodes: of each the values KEPT (bytes; bytes/s, None where firmware is silent); `cpus`;
            `initiators`, the nodes that reach it best by HMAT, none where that is silent;
            `distances`, {node as text: distance as firmware counts}.
        hbm: the finding: nodes, the rule that decided, evidence, emulated.
    """
    topology = hbmcomm.topology(sysfs, procfs)
    return {
        "nodes": [
            {key: getattr(node, key) for key in KEPT}
            | {"cpus": list(node.cpus), "initiators": list(node.initiators)}
            | {"distances": {str(other): far for other, far in sorted(node.distances.items())}}
            for node in topology.nodes
        ],
        "hbm": {
            "nodes": list(topology.hbm.nodes),
            "rule": topology.hbm.rule,
            "evidence": list(topology.hbm.evidence),
            "emulated": topology.hbm.emulated,
        },
    }

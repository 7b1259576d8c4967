"""The QEMU command of an emulated machine. boot.py starts it.

Source of the options: QEMU's manual, "Invocation", for 7.2 and later. HMAT and nodes without CPUs
need the machine type q35.
"""

from dataclasses import dataclass
from pathlib import Path

from experiments.emulation.machine import MIB, Description, Processor
from experiments.provision.system import QEMU

PROGRAM = QEMU.file
VENDOR = "hbmcomm"
"""The manufacturer in the guest's SMBIOS, by which programs recognise the guest."""
AGENT_PORT = "org.qemu.guest_agent.0"
AGENT, CONSOLE = "agent", "console.log"
"""In a machine's folder: the socket of the guest's agent, and the output of its console."""

ACCELERATORS = {"kvm": "kvm", "tcg": "tcg,thread=single"}
"""TCG with a thread per CPU hung at times with soft lockups; one thread is as fast here."""

DRIVE = "format=raw,if=virtio,snapshot=on,cache=unsafe,werror=report"
"""QEMU keeps what the guest writes in TMPDIR. If that is full, the guest gets a write error."""

SANDBOX = "on,obsolete=deny,elevateprivileges=deny,spawn=deny,resourcecontrol=deny"

KERNEL_PARAMETERS = (
    *("console=ttyS0", "quiet"),
    "panic=-1",  # a panic ends QEMU at once (-no-reboot)
    "mitigations=off",  # they empty TCG's address translations at every system call
    "no5lvl",  # a fifth level of page tables makes each of TCG's many walks longer
    "nokaslr",  # the kernel's 32 MiB must not be on a random node, such as HBM
    "swiotlb=noforce",  # no device needs the 64 MiB that it would take of a node
    "transparent_hugepage=madvise",  # memkind's heaps would take 2 MiB for each of 32 arenas a kind
    "numa_balancing=disable",  # the kernel must not move pages from their chosen nodes
)


@dataclass(frozen=True)
class Disk:
    """What a guest boots from; image is a raw ext4 file system, id a hash of its inputs."""

    kernel: Path
    initramfs: Path
    image: Path
    id: str


def arguments(
    machine: Description, disk: Disk, folder: Path, accelerator: str, shell: bool = False
) -> list[str]:
    """The whole command.

    Args:
        disk: the guest's writes to it are dropped at the end.
        folder: of the machine; QEMU makes AGENT and, without a shell, CONSOLE in it.
        accelerator: one of ACCELERATORS.
        shell: the guest runs a shell on this terminal.
    """
    cores = machine.cpus // machine.sockets
    return [
        PROGRAM,
        *("-accel", ACCELERATORS[accelerator]),
        *("-machine", _machine(machine)),
        *("-cpu", _cpu(machine.processor)),
        *("-smp", f"{machine.cpus},sockets={machine.sockets},cores={cores},threads=1"),
        *("-m", _memory(machine)),
        *("-nodefaults", "-no-user-config", "-no-reboot"),
        *("-display", "none"),
        *("-nic", "none"),
        *("-sandbox", SANDBOX),
        *("-smbios", f"type=1,manufacturer={VENDOR},product={machine.name},version={accelerator}"),
        *_nodes(machine),
        *_distances(machine),
        *(_hmat(machine) if machine.has_hmat else ()),
        *_dax(machine),
        *_devices(disk.image, folder / AGENT),
        *_console(folder / CONSOLE, shell),
        *("-kernel", str(disk.kernel)),
        *("-initrd", str(disk.initramfs)),
        *("-append", " ".join((*KERNEL_PARAMETERS, *(("hbmcomm.shell",) if shell else ())))),
    ]


def _machine(machine: Description) -> str:
    hmat = ",hmat=on" if machine.has_hmat else ""
    nvdimm = ",nvdimm=on" if machine.dax else ""
    return f"q35{hmat}{nvdimm}"


def _cpu(processor: Processor | None) -> str:
    """All features of the accelerator, under the name of the real processor."""
    if processor is None:
        return "max"
    return (
        f"max,vendor={processor.vendor},family={processor.family},model={processor.model},"
        f"model-id={processor.name}"
    )


def _memory(machine: Description) -> str:
    """Memory at boot, and address space for dax devices, which are DIMMs."""
    size = f"{machine.memory_bytes // MIB}M"
    if not machine.dax:
        return size
    most = machine.memory_bytes + sum(device.given_bytes for device in machine.dax)
    return f"{size},slots={len(machine.dax)},maxmem={most // MIB}M"


def _nodes(machine: Description) -> list[str]:
    words = []
    for node in machine.nodes:
        option = f"node,nodeid={node.id}"
        if node.memory_bytes:
            words += ["-object", _backend(f"memory{node.id}", node.memory_bytes)]
            option += f",memdev=memory{node.id}"
        if node.cpus:
            option += f",cpus={node.cpus[0]}-{node.cpus[-1]}"
        if machine.has_hmat:
            option += f",initiator={node.initiator}"
        words += ["-numa", option]
    return words


def _backend(name: str, size: int) -> str:
    return f"memory-backend-ram,id={name},size={size // MIB}M"


def _distances(machine: Description) -> list[str]:
    """Distances of each pair in one direction; QEMU uses them for both."""
    words = []
    for one, row in enumerate(machine.distances.rows):
        for other in range(one + 1, len(row)):
            words += ["-numa", f"dist,src={one},dst={other},val={row[other]}"]
    return words


def _hmat(machine: Description) -> list[str]:
    """Latency and bandwidth for the nodes' own CPUs; the kernel shows programs no other."""
    words = []
    for node in machine.nodes:
        pair = f"hmat-lb,initiator={node.initiator},target={node.id},hierarchy=memory"
        latency, bandwidth = machine.memory[node.memory].ns, (machine.bandwidth(node) or 0) // MIB
        words += ["-numa", f"{pair},data-type=access-latency,latency={latency}"]
        words += ["-numa", f"{pair},data-type=access-bandwidth,bandwidth={bandwidth}M"]
    return words


def _dax(machine: Description) -> list[str]:
    words = []
    for device in machine.dax:
        memory = f"dax{device.node}"
        words += ["-object", _backend(memory, device.given_bytes)]
        words += ["-device", f"nvdimm,id=nvdimm{device.node},memdev={memory},node={device.node}"]
    return words


def _devices(image: Path, agent: Path) -> list[str]:
    """The disk, a source of randomness, and the agent's port."""
    return [
        *("-drive", f"file={_escaped(image)},{DRIVE}"),
        *("-device", "virtio-rng-pci"),
        *("-device", "virtio-serial-pci"),
        *("-chardev", f"socket,id=agent,path={_escaped(agent)},server=on,wait=off"),
        *("-device", f"virtserialport,chardev=agent,name={AGENT_PORT}"),
    ]


def _console(log: Path, shell: bool) -> list[str]:
    """A log, or this terminal: there, Ctrl-C goes to the guest and Ctrl-a x ends QEMU."""
    if shell:
        device, monitor = "stdio,id=console,mux=on,signal=off", ["-mon", "chardev=console"]
    else:
        device, monitor = f"file,id=console,path={_escaped(log)}", []
    return ["-chardev", device, "-serial", "chardev:console", *monitor]


def _escaped(path: Path) -> str:
    """A value in a list that commas separate."""
    return str(path).replace(",", ",,")

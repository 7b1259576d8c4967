"""The installed QEMU: its path, its version, the command that installs it, and its accelerator."""

import functools
import os
import subprocess
from pathlib import Path

from experiments.emulation.qemu_command import PROGRAM
from experiments.model.errors import Missing
from experiments.processes import executables
from experiments.processes.executables import captured
from experiments.provision import system

KVM = Path("/dev/kvm")
PATIENCE = 3.0  # seconds; either takes a fifth of one. A KVM that is emulated itself takes six
PORT = 0xF4
SAID = 16
PROOF = SAID << 1 | 1  # QEMU's exit code when SAID is written to isa-debug-exit
SIZE = 2**20  # of the disk: the BIOS does not read one of a single sector
# To 64 bits, as Linux goes, and there an instruction that its allocator is made of: a KVM that runs
# in a machine which is emulated itself may know everything but that.
BOOT = bytes.fromhex(
    "fa 31c0 8ed8 8ec0"  # cli; ds = es = 0
    "66bf00100000 0f22df 6631c0 66b9000c0000 66f3ab"  # cr3 = 0x1000; three empty page tables there
    "c70600100320 c70600200330 c606003083"  # the first 2 MiB are where they are
    "0f20e0 0c20 0f22e0"  # cr4: physical address extension
    "66b9800000c0 0f32 80cc01 0f30"  # efer: long mode
    "0f20c0 660d01000080 0f22c0"  # cr0: protected mode and paging
    "0f0116777c ea587c0800"  # lgdt; jump to the 64-bit segment
    "bf00800000 f0480fc70f"  # lock cmpxchg16b [0x8000]
    f"b0{SAID:02x} e6{PORT:02x} f4"  # mov al, SAID; out PORT, al; hlt
    "0000000000000000 00000000009a2000"  # the segments: none, and 64-bit code
    "0f00 677c0000"  # where they are
)


@functools.cache
def best() -> str:
    """ "kvm" or "tcg"; whether KVM works, one tiny program decides that boots and ends QEMU."""
    return "kvm" if os.access(KVM, os.R_OK | os.W_OK) and runs("kvm") else "tcg"


def runs(accelerator: str) -> bool:
    """Whether QEMU runs a boot sector with an accelerator. Missing where there is none."""
    disk = os.memfd_create("hbmcomm-boot")  # without a name that a kill could leave behind
    try:
        os.write(disk, boot_sector())
        os.ftruncate(disk, SIZE)
        done = subprocess.run(
            [program(), *trial(accelerator, f"/proc/self/fd/{disk}")],
            pass_fds=(disk,),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return False
    finally:
        os.close(disk)
    return done.returncode == PROOF


def boot_sector() -> bytes:
    """A disk's first sector, which a BIOS loads and runs."""
    return BOOT.ljust(510, b"\0") + b"\x55\xaa"


def trial(accelerator: str, disk: str) -> list[str]:
    """QEMU's command to boot a disk; the guest ends with PROOF when its program has run."""
    return [
        *("-accel", accelerator, "-machine", "q35", "-cpu", "max", "-m", "64M"),
        "-no-reboot",
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *("-drive", f"file={disk},format=raw,if=virtio,readonly=on"),
        *("-device", f"isa-debug-exit,iobase={PORT:#x},iosize=0x4"),
    ]


def program() -> str:
    """QEMU's path.

    Raises:
        Missing: naming the command that installs it.
    """
    path = executables.find(PROGRAM)
    if path is None:
        raise Missing(
            f"emulated machines need {PROGRAM}, which is not installed; "
            f"sudo {system.remedy((system.QEMU,))}"
        )
    return path


def version() -> str:
    """The first line of QEMU's version text.

    Raises:
        Missing: it is not installed, or does not start; names the command that mends it.
    """
    command = [program(), "--version"]
    try:
        done = captured(command)
        errors, lines = done.stderr, done.stdout.splitlines()
    except OSError as error:
        errors, lines = str(error), []
    if not lines:
        raise Missing(
            f"{command[0]} does not start: {errors.strip() or 'it prints nothing'}; "
            f"sudo {system.remedy((system.QEMU,))} --reinstall"
        )
    return lines[0]

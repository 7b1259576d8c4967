"""What QEMU can run an emulated machine with: KVM where it works, else TCG. Found out by trying."""

import functools
import os
import subprocess
from pathlib import Path

from experiments.provision import emulator

KVM = Path("/dev/kvm")
PATIENCE = 3.0  # seconds; either takes a fifth of one. A KVM that is emulated itself takes six
PORT = 0xF4
SAID = 16
PROOF = SAID << 1 | 1  # QEMU's exit code when SAID is written to isa-debug-exit
SECTOR = 512
SIZE = 2**20  # of the disk: the BIOS does not read one of a single sector
# mov al, SAID; out PORT, al; hlt: the smallest program whose end shows that it ran
BOOT = bytes([0xB0, SAID, 0xE6, PORT, 0xF4])


@functools.cache
def best() -> str:
    """ "kvm" or "tcg"; whether KVM works, one tiny program decides that boots and ends QEMU."""
    return "kvm" if os.access(KVM, os.R_OK | os.W_OK) and runs("kvm") else "tcg"


def runs(accelerator: str) -> bool:
    """Whether QEMU runs a boot sector with an accelerator. QemuMissing where there is none."""
    disk = os.memfd_create("hbmcomm-boot")  # without a name that a kill could leave behind
    try:
        os.write(disk, boot_sector())
        os.ftruncate(disk, SIZE)
        done = subprocess.run(
            [emulator.program(), *trial(accelerator, f"/proc/self/fd/{disk}")],
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
    return BOOT.ljust(SECTOR - 2, b"\0") + b"\x55\xaa"


def trial(accelerator: str, disk: str) -> list[str]:
    """What QEMU is asked for to boot a disk; it ends with PROOF when its program has run."""
    return [
        *("-accel", accelerator, "-machine", "q35", "-cpu", "max", "-m", "64M"),
        "-no-reboot",
        *("-nodefaults", "-no-user-config", "-display", "none"),
        *("-drive", f"file={disk},format=raw,if=virtio,readonly=on"),
        *("-device", f"isa-debug-exit,iobase={PORT:#x},iosize=0x4"),
    ]

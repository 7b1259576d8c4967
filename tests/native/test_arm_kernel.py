"""The tests of the C core that need a kernel for arm64, which test_arm.py has none of.

QEMU boots Debian's kernel with a file system of two static programs in memory: the first process
and the test program. QEMU orders memory as the x86 host does, so this shows functions, not order.
"""

import gzip
import os
import re
import shutil
import subprocess
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

import pytest

from tests.native.compiling import (
    ARM,
    ARM_PACKAGES,
    HERE,
    SOURCES,
    compile_each,
    link,
    run,
    tool_at,
)
from tests.native.test_arm import NEED_A_KERNEL
from tests.native.test_core import LEAST_SECONDS, SECONDS, SEED, TESTS

KERNEL = "linux-image-cloud-arm64"
BOOT_SECONDS = 900  # of a busy machine; 60 on an idle one
CPU = "max,pauth-impdef=on,sve256=on"  # the architecture's own pauth takes most of the time

pytestmark = [pytest.mark.rare, pytest.mark.timeout(1800)]


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> str:
    """What a kernel printed while it ran the tests."""
    folder = tmp_path_factory.mktemp("kernel")
    compiler = tool_at(ARM.command, ARM_PACKAGES)
    kernel, emulator = _kernel(folder), _emulator(folder)
    program, init = folder / "core_test", folder / "init"
    link(program, compile_each(folder, SOURCES, ARM), ARM, after=("-static",))
    made = run(compiler, "-O2", "-static", HERE / "arm_init.c", "-o", init)
    assert made.returncode == 0, made.stdout
    files = folder / "files.gz"
    files.write_bytes(gzip.compress(_archive({"init": init, "core_test": program}), 1))
    tests = [f"{test}:{SEED}:{SECONDS.get(test, LEAST_SECONDS)}" for test in NEED_A_KERNEL]
    machine = [emulator, *("-machine", "virt", "-cpu", CPU, "-smp", "2", "-m", "1536")]
    devices = ["-nic", "none", "-display", "none", "-monitor", "none", "-serial", "stdio"]
    words = f"console=ttyAMA0 quiet panic=-1 rdinit=/init -- {' '.join(tests)}"
    command = [*machine, *devices, "-no-reboot", "-kernel", kernel, "-initrd", files]
    with (folder / "console").open("wb") as printed, suppress(subprocess.TimeoutExpired):
        subprocess.run(
            [*command, "-append", words],
            stdin=subprocess.DEVNULL,
            stdout=printed,
            stderr=subprocess.STDOUT,
            timeout=BOOT_SECONDS,
        )
    return (folder / "console").read_text(errors="replace")


@pytest.mark.parametrize("test", NEED_A_KERNEL)
def test_core_on_an_arm_kernel(test: str, console: str) -> None:
    assert re.search(rf"^result {test} 0\s*$", console, re.MULTILINE), f"{TESTS[test]}\n{console}"


def _kernel(folder: Path) -> Path:
    """Debian's kernel for arm64, from apt's sources with a state of its own."""
    apt = {"APT_CONFIG": str(folder / "apt.conf")}
    for name in ("state/lists/partial", "cache/archives/partial"):
        (folder / name).mkdir(parents=True)
    (folder / "status").touch()
    (folder / "apt.conf").write_text(
        'APT::Architecture "arm64";\nAPT::Architectures { "arm64"; };\n'
        f'Dir::State "{folder}/state";\nDir::State::status "{folder}/status";\n'
        f'Dir::Cache "{folder}/cache";\nAPT::Sandbox::User "root";\n'
    )
    _apt(["apt-get", "update"], folder, apt)
    described = _apt(["apt-cache", "show", "--no-all-versions", KERNEL], folder, apt)
    depends = re.search(r"^Depends: (linux-image-\S+)", described, re.MULTILINE)
    if depends is None:
        pytest.skip(f"apt has no {KERNEL}: {described}")
    _apt(["apt-get", "download", depends[1]], folder, apt)
    return _unpacked(folder, depends[1], "boot/vmlinuz-*")


def _emulator(folder: Path) -> Path:
    """QEMU for arm64 machines; where it is not installed, only its package is unpacked."""
    installed = shutil.which("qemu-system-aarch64")
    if installed:
        return Path(installed)
    _apt(["apt-get", "download", "qemu-system-arm"], folder, {})
    program = _unpacked(folder, "qemu-system-arm", "usr/bin/qemu-system-aarch64")
    tried = run(program, "--version")
    if tried.returncode:
        pytest.skip(f"no emulator of arm64: apt-get install qemu-system-arm; {tried.stdout}")
    return program


def _apt(command: list[str], folder: Path, variables: Mapping[str, str]) -> str:
    """Run apt in a folder; skips with its message where it fails."""
    done = subprocess.run(
        [tool_at(command[0]), *command[1:]],
        cwd=folder,
        env=os.environ | variables,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=300,
    )
    if done.returncode:
        pytest.skip(f"{' '.join(command)}: {done.stdout.strip()[-500:]}")
    return done.stdout


def _unpacked(folder: Path, package: str, pattern: str) -> Path:
    """A file of a package that was downloaded into the folder."""
    (archive,) = folder.glob(f"{package}_*.deb")
    done = run(tool_at("dpkg-deb"), "-x", archive, folder / package, seconds=300)
    assert done.returncode == 0, done.stdout
    (path,) = (folder / package).glob(pattern)
    return path


def _archive(programs: Mapping[str, Path]) -> bytes:
    """A cpio archive of the form "newc", as kernels unpack it (their initramfs buffer format)."""
    entries = [(name, 0o100755, path.read_bytes()) for name, path in programs.items()]
    made = b""
    for number, (name, mode, content) in enumerate([*entries, ("TRAILER!!!", 0, b"")]):
        fields = (number, mode, 0, 0, 1, 0, len(content), 0, 0, 0, 0, len(name) + 1, 0)
        head = b"070701" + b"".join(b"%08X" % field for field in fields) + name.encode() + b"\0"
        made += head + bytes(-len(head) % 4) + content + bytes(-len(content) % 4)
    return made

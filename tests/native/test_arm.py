"""The C core on an emulated arm64 CPU: its NEON and SVE kernels, and its calls.

A cross-compiler builds the core with the test program of test_core.py; QEMU runs it in user mode.
QEMU orders memory as the x86 host does, so this shows that functions are right. That fences and
orders of stores are right on Arm is shown by the models of the protocols, not here.
"""

from pathlib import Path

import pytest

from tests.native.compiling import (
    ARITHMETIC,
    ARITHMETIC_TESTS,
    ARM,
    ARM_PACKAGES,
    SOURCES,
    compile_each,
    link,
    run,
    tool_at,
)
from tests.native.test_core import LEAST_SECONDS, SECONDS, SEED, TESTS

EMULATOR = "qemu-aarch64-static"
LIBRARIES = "/usr/aarch64-linux-gnu"

NEED_A_KERNEL = {
    "died": "QEMU refuses robust lists",
    "claims": "QEMU refuses robust lists",
    "claims_and_forks": "QEMU refuses robust lists",
    "departures": "QEMU refuses robust lists",
    "kills": "QEMU has no ptrace",
    "offers": "QEMU has no process_vm_readv",
    "pushes": "QEMU has no process_vm_readv",
    "heap": "MADV_REMOVE does nothing, and reports success",
    "heap_threads": "MADV_REMOVE does nothing, and reports success",
    "refusals": "MADV_REMOVE does nothing, and reports success",
}
"""The tests that user mode cannot run, and why; test_arm_kernel.py boots a kernel for them."""

WITH_SVE = "max"
WITHOUT_SVE = "max,sve=off"
IN_CI = {
    (WITHOUT_SVE, "kernels"),
    *((WITH_SVE, test) for test in ("halves", "links", "groups", "mismatch", "closed")),
    *((WITH_SVE, test) for test in ("interrupted", "halfway", "flags", "busy", "refused")),
    *((WITH_SVE, test) for test in ("heap_forks", "handler", "optimizers", "updates")),
}
"""Those of at most a second, and the kernels."""
CASES = [
    *((WITH_SVE, test) for test in TESTS if test not in NEED_A_KERNEL),
    *((WITHOUT_SVE, test) for test in ARITHMETIC_TESTS),
]

pytestmark = pytest.mark.timeout(900)


@pytest.fixture(scope="module")
def objects(tmp_path_factory: pytest.TempPathFactory) -> dict[Path, Path]:
    """The object of each source."""
    folder = tmp_path_factory.mktemp("arm")
    tool_at(EMULATOR, ARM_PACKAGES)
    compiler, empty = tool_at(ARM.command, ARM_PACKAGES), folder / "empty.c"
    empty.write_text("int main(void) { return 0; }\n")
    tried = run(compiler, *ARM.flags, empty, "-o", folder / "empty")
    if tried.returncode:
        pytest.skip(f"no cross-compiler for arm64: apt-get install {ARM_PACKAGES}; {tried.stdout}")
    return dict(zip(SOURCES, compile_each(folder, SOURCES, ARM), strict=True))


@pytest.fixture(scope="module")
def program(objects: dict[Path, Path], tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program for arm64."""
    made = tmp_path_factory.mktemp("arm") / "core_test"
    link(made, objects.values(), ARM)
    return made


def check(program: Path, cpu: str, test: str) -> None:
    """Run one test of the program on an emulated CPU; fail with its output."""
    emulator = (EMULATOR, "-L", LIBRARIES, "-cpu", cpu)
    seconds = SECONDS.get(test, LEAST_SECONDS)
    checked = run(*emulator, program, test, str(SEED), str(seconds), seconds=600)
    assert checked.returncode == 0, f"{TESTS[test]}: {checked.returncode}\n{checked.stdout}"


@pytest.mark.parametrize(
    ("cpu", "test"),
    [pytest.param(*case, marks=() if case in IN_CI else pytest.mark.rare) for case in CASES],
)
def test_core_on_arm(cpu: str, test: str, program: Path) -> None:
    check(program, cpu, test)


@pytest.mark.parametrize(
    ("cflags", "test"),
    [
        pytest.param("-mcpu=neoverse-v1 -Ofast -ffast-math", "kernels", marks=pytest.mark.rare),
        pytest.param("-mcpu=neoverse-v1 -O3", "reductions", marks=pytest.mark.rare),
        pytest.param("-march=armv8.3-a -O3", "kernels", marks=pytest.mark.rare),
        pytest.param("-mcpu=a64fx -ffast-math", "optimizers", marks=pytest.mark.rare),
    ],
)
def test_cflags_change_no_bit_on_arm(
    cflags: str, test: str, objects: dict[Path, Path], tmp_path: Path
) -> None:
    before, made = cflags.split(), tmp_path / "core_test"
    arithmetic = compile_each(tmp_path, ARITHMETIC, ARM, before=before)
    others = [compiled for source, compiled in objects.items() if source not in ARITHMETIC]
    link(made, [*others, *arithmetic], ARM)
    check(made, WITH_SVE, test)

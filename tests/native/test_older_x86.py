"""The C core on emulated x86 CPUs with fewer instructions than those of today.

The core chooses its kernels when it is loaded, by what the CPU has. QEMU has AVX2 since 7.2, and no
AVX-512.
"""

import platform
from pathlib import Path

import pytest

from tests.native.compiling import ARITHMETIC_TESTS, build, run, tool_at
from tests.native.test_core import LEAST_SECONDS, SECONDS, SEED, TESTS

EMULATOR = "qemu-x86_64-static"
CPUS = {"Nehalem": "no AVX", "IvyBridge": "AVX and F16C without AVX2", "Haswell": "AVX2"}

pytestmark = [
    pytest.mark.rare,
    pytest.mark.timeout(900),
    pytest.mark.skipif(platform.machine() != "x86_64", reason="not an x86-64 machine"),
]


@pytest.fixture(scope="module")
def program(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program, as the library is compiled."""
    tool_at(EMULATOR, "qemu-user-static")
    made = tmp_path_factory.mktemp("x86") / "core_test"
    build(made)
    return made


@pytest.mark.parametrize("test", [*ARITHMETIC_TESTS, "links", "flags", "handler"])
@pytest.mark.parametrize("cpu", CPUS)
def test_core_on_older_x86(cpu: str, test: str, program: Path) -> None:
    seconds = SECONDS.get(test, LEAST_SECONDS)
    words = (EMULATOR, "-cpu", cpu, program, test, str(SEED), str(seconds))
    checked = run(*words, seconds=600)
    shown = f"{CPUS[cpu]}: {TESTS[test]}: {checked.returncode}\n{checked.stdout}"
    assert checked.returncode == 0, shown

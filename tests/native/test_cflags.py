"""CFLAGS of a user change no bit of a result.

pip and setuptools put them before the flags of the library. Here the sources that do arithmetic are
compiled with such flags; the rest of the core, and the test program with its reference, without.
tests/test_setup.py shows that the library itself is compiled and linked so.
"""

import platform
from pathlib import Path

import pytest

from tests.native.compiling import (
    ARITHMETIC,
    ARITHMETIC_TESTS,
    SOURCES,
    compile_each,
    link,
    run,
)
from tests.native.test_core import LEAST_SECONDS, SEED

QUICK = ("-O1", "-DHBM_ONE_CLONE")
CFLAGS = [
    pytest.param("-march=native -O3 -DHBM_ONE_CLONE", marks=pytest.mark.rare),
    pytest.param("-march=native -Ofast -ffast-math -ffp-contract=fast", marks=pytest.mark.rare),
    pytest.param("-march=native -O3", marks=pytest.mark.rare),
    pytest.param("-march=native -Ofast -DHBM_ONE_CLONE", marks=pytest.mark.rare),
    pytest.param(
        "-mfpmath=387 -funsafe-math-optimizations -DHBM_ONE_CLONE",
        marks=[
            pytest.mark.rare,
            pytest.mark.skipif(platform.machine() != "x86_64", reason="a flag for x86"),
        ],
    ),
]


@pytest.fixture(scope="module")
def other_objects(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    """All objects of the test program but those that do arithmetic."""
    others = [source for source in SOURCES if source not in ARITHMETIC]
    return compile_each(tmp_path_factory.mktemp("others"), others, after=QUICK)


@pytest.mark.timeout(600)
@pytest.mark.parametrize("cflags", CFLAGS)
def test_cflags_change_no_bit(cflags: str, other_objects: list[Path], tmp_path: Path) -> None:
    before, program = cflags.split(), tmp_path / "core_test"
    link(program, [*other_objects, *compile_each(tmp_path, ARITHMETIC, before=before)])
    for test in ARITHMETIC_TESTS:
        checked = run(program, test, str(SEED), str(LEAST_SECONDS), seconds=300)
        assert checked.returncode == 0, f"{test}: {checked.stdout}"

"""The costs of calls on modelled machines, counted by the core itself."""

import sys
from pathlib import Path

import pytest

from tests.native.compiling import HERE, build, run

COUNTING = ("-O2", "-DHBM_COUNTERS")
SEED = 6717


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program with counters."""
    program = tmp_path_factory.mktemp("counting") / "core_test"
    build(program, *COUNTING)
    return program


@pytest.mark.rare
def test_the_cost_of_a_call_grows_with_the_levels_of_the_machine_not_with_its_ranks(
    counting: Path,
) -> None:
    done = run(counting, "costs", str(SEED), "0")
    assert done.returncode == 0, done.stdout
    assert done.stdout.count("lines/rank") == 40, done.stdout


@pytest.mark.rare
@pytest.mark.timeout(600)
def test_the_page_on_costs_has_the_results_of_the_model(counting: Path) -> None:
    made = run(sys.executable, HERE / "costs" / "expected_times.py", counting, seconds=500)
    assert made.returncode == 0, made.stdout
    page = (HERE.parents[1] / "docs" / "costs.md").read_text()
    assert made.stdout in page, "run tests/native/costs/expected_times.py COUNTING docs/costs.md"

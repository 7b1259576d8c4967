"""The C core on its own: threads are its ranks, a naive reference is its judge.

The test program is built four ways, by the system's compiler: as the library is, and under each of
its sanitizers. To try another seed: build as below, then `core_test random_calls SEED SECONDS`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "hbmcomm" / "_native"
SOURCES = sorted([*CORE.glob("[!_]*.c"), *HERE.glob("*.c")])
FLAGS = ("-std=gnu11", "-g", "-pthread", f"-I{CORE}", "-fno-math-errno", "-ffp-contract=off")

# Sanitizers' runtimes start later than the loader picks clones, hence one clone for them.
# -Wno-tsan: ThreadSanitizer does not model fences, and gcc says so. It judges races by the stores
# with release and the loads with acquire, all of which it sees; the fences in wait.c order no data,
# they decide whether a sleeper is woken. No report is suppressed.
BUILDS = {
    "plain": ("-O3",),
    "thread": ("-O2", "-fsanitize=thread", "-Wno-tsan", "-DHBM_ONE_CLONE"),
    "address": ("-O1", "-fsanitize=address", "-DHBM_ONE_CLONE"),
    "undefined": ("-O1", "-fsanitize=undefined", "-fno-sanitize-recover=all", "-DHBM_ONE_CLONE"),
}
COUNTING = ("-O2", "-DHBM_COUNTERS")

WARNINGS = (
    *("-Wall", "-Wextra", "-Wshadow", "-Wvla", "-Wundef", "-Wwrite-strings"),
    *("-Wstrict-prototypes", "-Wmissing-prototypes", "-Wold-style-definition"),
    *("-Wconversion", "-Wsign-conversion", "-Wdouble-promotion"),
)

SEED = 6717
SECONDS = 0.5
Check = Callable[..., None]

pytestmark = pytest.mark.alone  # threads that spin and sleepers that are timed


def _run(*command: str | Path, seconds: float = 60.0) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"TSAN_OPTIONS": "halt_on_error=1"}
    return subprocess.run(
        [str(part) for part in command],
        env=environment,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        timeout=seconds,
    )


def _build(program: Path, *flags: str) -> None:
    built = _run(_compiler("cc"), *FLAGS, *flags, *SOURCES, "-lm", "-o", program)
    assert built.returncode == 0, built.stdout


def _compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} on this machine")
    return found


@pytest.fixture(scope="module", params=BUILDS)
def check(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Check:
    """check(test, seconds) runs one test of the program and fails with what it said."""
    folder, build = tmp_path_factory.mktemp(request.param), BUILDS[request.param]
    cc, empty, program = _compiler("cc"), folder / "empty.c", folder / "core_test"
    empty.write_text("int main(void) { return 0; }\n")
    tried = _run(cc, *build, empty, "-o", folder / "empty")
    if tried.returncode == 0:
        tried = _run(folder / "empty")
    if tried.returncode != 0:
        pytest.skip(f"no program of build {request.param} runs here: {tried.stdout.strip()}")
    _build(program, *build)

    def run(test: str, seconds: float = SECONDS) -> None:
        found = _run(program, test, str(SEED), str(seconds))
        assert found.returncode == 0, f"{test} ended with {found.returncode}:\n{found.stdout}"

    return run


def test_any_sequence_of_calls_gives_what_a_naive_reference_gives(check: Check) -> None:
    check("random_calls", 5)


def test_every_reduction_of_every_type_gives_what_the_reference_gives(check: Check) -> None:
    check("folds")


def test_kernels_fold_and_stream_any_length_from_anywhere(check: Check) -> None:
    check("kernels")


def test_every_byte_that_goes_from_node_to_node_is_counted(check: Check) -> None:
    check("links")


def test_groups_follow_the_machine_and_fit_each_other_on_all_ranks(check: Check) -> None:
    check("groups")


def test_many_ranks_on_machines_with_many_cores_give_what_the_reference_gives(check: Check) -> None:
    check("many_ranks", 2)


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program with counters."""
    program = tmp_path_factory.mktemp("counting") / "core_test"
    _build(program, *COUNTING)
    return program


def test_what_a_call_costs_grows_with_the_levels_of_the_machine_not_with_its_ranks(
    counting: Path,
) -> None:
    found = _run(counting, "costs", str(SEED), "0")
    assert found.returncode == 0, found.stdout
    assert found.stdout.count("lines/rank") == 40, found.stdout


@pytest.mark.timeout(600)
def test_the_page_on_costs_has_what_the_model_makes_of_the_counters(counting: Path) -> None:
    made = _run(sys.executable, HERE / "expected_times.py", counting, seconds=500)
    assert made.returncode == 0, made.stdout
    page = (HERE.parents[1] / "docs" / "costs.md").read_text()
    assert made.stdout in page, "run tests/native/expected_times.py COUNTING docs/costs.md"


def test_halves_are_widened_exactly_and_rounded_to_nearest_even(check: Check) -> None:
    check("halves")


def test_every_rank_is_told_which_two_calls_differ(check: Check) -> None:
    check("mismatch")


def test_whoever_waits_for_a_rank_that_left_is_told_so(check: Check) -> None:
    check("closed")


def test_a_rank_that_is_interrupted_at_the_start_ends_the_call_of_all(check: Check) -> None:
    check("interrupted")


def test_a_rank_that_is_interrupted_halfway_ends_the_call_of_all(check: Check) -> None:
    check("halfway")


def test_a_rank_that_lies_has_no_other_touch_what_it_does_not_share(
    request: pytest.FixtureRequest, check: Check
) -> None:
    if "thread" in request.node.callspec.id:
        pytest.skip("its lies are data races on purpose")
    check("intruder", 2)


def test_a_process_that_died_is_noticed(check: Check) -> None:
    check("died")


def test_of_all_that_claim_a_place_one_has_it_while_it_lives(check: Check) -> None:
    check("claims")
    check("claims_and_forks")


def test_who_is_killed_while_it_asks_for_a_claim_ends_no_other_that_counts_alike(
    check: Check,
) -> None:
    check("kills")


def test_a_rank_that_waits_long_sleeps_and_is_woken(check: Check) -> None:
    check("sleep")


def test_of_two_threads_in_one_communicator_one_is_sent_away(check: Check) -> None:
    check("busy")


def test_no_communicator_and_forks_and_closed_ones_are_refused(check: Check) -> None:
    check("refused")


def test_the_heap_does_what_a_naive_model_does(check: Check) -> None:
    check("heap", 1)


def test_threads_share_a_heap_without_a_byte_of_each_other_s(check: Check) -> None:
    check("heap_threads", 1)


def test_a_child_of_a_fork_has_no_heap(check: Check) -> None:
    check("heap_forks")


def test_numpy_s_hook_takes_and_gives_each_block_where_it_belongs(check: Check) -> None:
    check("handler")


def test_who_has_left_is_seen_with_all_that_it_wrote(check: Check) -> None:
    check("departures")


def test_two_cores_copy_through_common_memory(check: Check) -> None:
    check("rates")


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_find_nothing_to_warn_of(compiler: str, tmp_path: Path) -> None:
    strict = (*WARNINGS, "-Werror", "-O2", "-DHBM_ONE_CLONE")
    if compiler == "clang":  # which has no ivdep and need not know of it
        strict = (*strict, "-Wno-unknown-pragmas")
    built = _run(
        _compiler(compiler), *FLAGS, *strict, *SOURCES, "-lm", "-o", tmp_path / "core_test"
    )
    assert built.returncode == 0, built.stdout

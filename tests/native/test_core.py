"""The C core alone: threads are its ranks, and a naive reference gives the expected results.

The system's compiler builds the test program in three ways: like the library, with ThreadSanitizer,
and with the sanitizers of addresses and of undefined behaviour. To try another seed, build it as
below, then run `core_test random_calls SEED SECONDS`.
"""

import os
import shutil
import subprocess
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

HERE = Path(__file__).parent
CORE = HERE.parents[1] / "hbmcomm" / "_native"
SOURCES = sorted([*CORE.glob("*/*.c"), *HERE.glob("*/*.c")])
FLAGS = ("-std=gnu11", "-g", "-pthread", f"-I{CORE}", f"-I{HERE / 'program'}")
FLAGS += ("-fno-math-errno", "-ffp-contract=off")

# The loader chooses clones before sanitizers' runtimes start, hence one clone for them.
# -Wno-tsan: gcc warns that ThreadSanitizer does not model fences. It detects races from the stores
# with release and the loads with acquire, which it models; the fences in bell.c order no data, they
# decide whether a sleeper is woken. No report is suppressed.
BUILDS = {
    "plain": ("-O3",),
    "thread": ("-O2", "-fsanitize=thread", "-Wno-tsan", "-DHBM_ONE_CLONE"),
    "address": (
        *("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DHBM_ONE_CLONE"),
    ),
}
COUNTING = ("-O2", "-DHBM_COUNTERS")

WARNINGS = (
    "-Wall -Wextra -Wshadow -Wvla -Wundef -Wwrite-strings -Wstrict-prototypes -Wmissing-prototypes "
    "-Wold-style-definition -Wconversion -Wsign-conversion -Wdouble-promotion"
)

TESTS = {
    "random_calls": "any sequence of calls gives the results of a naive reference",
    "many_ranks": "so does one of many ranks, on machines with many cores",
    "reductions": "every reduction of every dtype gives the result of the reference",
    "kernels": "kernels reduce and stream any length from any address",
    "halves": "halves are widened exactly and rounded to nearest even",
    "links": "every byte that crosses between nodes is counted",
    "groups": "groups follow the machine and match each other on all ranks",
    "mismatch": "every rank gets a report of two calls that differ",
    "closed": "a wait for a rank that left ends, and reports that rank",
    "interrupted": "a rank that is interrupted at the start ends the call of all",
    "halfway": "a rank that is interrupted in the middle ends the call of all",
    "intruder": "a malicious rank makes no other access memory that it does not share",
    "died": "the death of a process is detected",
    "claims": "a claim has one owner, for as long as its process lives",
    "claims_and_forks": "the child of a fork does not release its parent's claim",
    "kills": "a rank that is killed while it acquires a claim does not end another's",
    "sleep": "a rank that waits long sleeps and is woken",
    "flags": "what a flag announces is there, and every wait for one ends",
    "busy": "of two threads in one communicator one is refused",
    "refused": "calls on no communicator, a closed one or one of a fork's parent are refused",
    "heap": "the heap has the state of a naive model",
    "heap_threads": "threads share a heap, and none gets a byte of another",
    "heap_forks": "the child of a fork cannot use its parent's heap",
    "handler": "NumPy's hook allocates and frees each block in the right memory",
    "departures": "a rank's departure shows after all that it wrote",
    "rates": "two cores copy through common memory",
    "optimizers": "optimisers have the bits of their formulas for any length from any address",
    "updates": "a parameter server has the weights of a serial optimiser, wherever chunks are",
}
"""The tests of the program, and what each shows."""
WITHOUT_THREAD_SANITIZER = {
    "intruder": "its writes are data races on purpose",
    "kernels": "it has one thread",
    "optimizers": "it has one thread",
}

SEED = 6717
LEAST_SECONDS = 0.5
SECONDS = {"random_calls": 5, "many_ranks": 2, "intruder": 2, "heap": 1, "heap_threads": 1}
Check = Callable[[str, float], None]

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
    """Compile every source by itself, on all cores, and link them."""
    cc = _compiler("cc")

    def compiled(number: int) -> Path:
        made = program.with_name(f"{number}.o")
        done = _run(cc, *FLAGS, *flags, "-c", SOURCES[number], "-o", made)
        assert done.returncode == 0, done.stdout
        return made

    with ThreadPoolExecutor(os.cpu_count()) as pool:
        objects = [*pool.map(compiled, range(len(SOURCES)))]
    linked = _run(cc, *FLAGS, *flags, *objects, "-lm", "-o", program)
    assert linked.returncode == 0, linked.stdout


def _compiler(name: str) -> str:
    found = shutil.which(name)
    if found is None:
        pytest.skip(f"there is no {name} on this machine")
    return found


@pytest.fixture(scope="module", params=BUILDS)
def check(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Check:
    """check(test, seconds) runs one test of the program and fails with its output."""
    folder, build = tmp_path_factory.mktemp(request.param), BUILDS[request.param]
    cc, empty, program = _compiler("cc"), folder / "empty.c", folder / "core_test"
    empty.write_text("int main(void) { return 0; }\n")
    tried = _run(cc, *build, empty, "-o", folder / "empty")
    if tried.returncode == 0:
        tried = _run(folder / "empty")
    if tried.returncode != 0:
        pytest.skip(f"no program of build {request.param} runs here: {tried.stdout.strip()}")
    _build(program, *build)

    def run(test: str, seconds: float) -> None:
        found = _run(program, test, str(SEED), str(seconds))
        assert found.returncode == 0, f"{TESTS[test]}: {found.returncode}\n{found.stdout}"

    return run


@pytest.mark.parametrize("test", TESTS)
def test_core_alone(test: str, check: Check, request: pytest.FixtureRequest) -> None:
    if test in WITHOUT_THREAD_SANITIZER and "thread" in request.node.callspec.id:
        pytest.skip(WITHOUT_THREAD_SANITIZER[test])
    check(test, SECONDS.get(test, LEAST_SECONDS))


@pytest.fixture(scope="module")
def counting(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The test program with counters."""
    program = tmp_path_factory.mktemp("counting") / "core_test"
    _build(program, *COUNTING)
    return program


def test_the_cost_of_a_call_grows_with_the_levels_of_the_machine_not_with_its_ranks(
    counting: Path,
) -> None:
    found = _run(counting, "costs", str(SEED), "0")
    assert found.returncode == 0, found.stdout
    assert found.stdout.count("lines/rank") == 40, found.stdout


@pytest.mark.timeout(600)
def test_the_page_on_costs_has_the_results_of_the_model(counting: Path) -> None:
    made = _run(sys.executable, HERE / "costs" / "expected_times.py", counting, seconds=500)
    assert made.returncode == 0, made.stdout
    page = (HERE.parents[1] / "docs" / "costs.md").read_text()
    assert made.stdout in page, "run tests/native/costs/expected_times.py COUNTING docs/costs.md"


@pytest.mark.parametrize("compiler", ["gcc", "clang"])
def test_compilers_have_no_warnings(compiler: str, tmp_path: Path) -> None:
    strict = (*WARNINGS.split(), "-Werror", "-O2", "-DHBM_ONE_CLONE")
    if compiler == "clang":  # it has no ivdep, and works without
        strict = (*strict, "-Wno-unknown-pragmas")
    built = _run(
        _compiler(compiler), *FLAGS, *strict, *SOURCES, "-lm", "-o", tmp_path / "core_test"
    )
    assert built.returncode == 0, built.stdout

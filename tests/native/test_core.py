"""The C core alone: threads are its ranks, and a naive reference gives the expected results.

The system's compiler builds the test program in three ways: like the library, with ThreadSanitizer,
and with the sanitizers of addresses and of undefined behaviour. To try another seed, build it as
below, then run `core_test random_calls SEED SECONDS`.
"""

from collections.abc import Callable

import pytest

from tests.native.compiling import build, run, tool_at

# The loader chooses clones before sanitizers' runtimes start, hence one clone for them.
# -Wno-tsan: gcc warns that ThreadSanitizer does not model fences. It detects races from the stores
# with release and the loads with acquire, which it models; the fences in bell.c order no data, they
# decide whether a sleeper is woken. No report is suppressed.
# The last build has 1/64 of the memory for pieces and 8 bits to count them: its messages reach the
# limits that only hundreds of gigabytes would reach in the others.
BUILDS = {
    "plain": (),
    "thread": ("-O2", "-fsanitize=thread", "-Wno-tsan", "-DHBM_ONE_CLONE"),
    "address": (
        *("-O1", "-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-DHBM_ONE_CLONE"),
        *("-DHBM_SHRINK=64", "-DSTEP_BITS=8"),
    ),
}

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
    "failing": "where a function of the program fails on one rank, none gets a wrong result",
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
    "offers": "a rank looks at no byte that it does not send before it offers its memory",
    "pushes": "what is written into a receiver's memory is right, and ends before it fails",
    "steps": "no step of a call has a number of the next one, whatever the length of pieces",
    "leaving": "a rank that leaves keeps the staging buffers that its peers may read",
    "held": "threads that release held memory at once release it once",
    "many_in_flight": "each wait advances every operation in flight, however many there are",
    "numbers": "the number of an operation never names another one",
    "sleepers": "of two threads that sleep on a rank, each is woken",
    "mpi_threads": "a thread that may not call MPI leaves that to one that may",
    "watched": "a thread of the library receives into pages whose faults the program handles",
    "forks": "the child of a fork finds no lock held, and has operations of its own",
    "refusals": "idle memory is returned but for what the kernel refuses, or a peer may write into",
    "hosts": "any sequence of calls of several hosts gives the results of a naive reference",
    "lost": "a rank that waits for a rank of another host stops once that one is lost",
    "hooks": "neither a program's end nor an operation that starts misses the hooks of MPI",
    "rates": "two cores copy through common memory",
    "optimizers": "optimisers have the bits of their formulas for any length from any address",
    "updates": "a parameter server has the weights of a serial optimiser, wherever chunks are",
}
"""The tests of the program, and what each shows."""
WITHOUT_THREAD_SANITIZER = {
    "reductions": "random_calls makes such calls",
    "intruder": "its writes are data races on purpose",
    "kernels": "it has one thread",
    "optimizers": "it has one thread",
    "steps": "only a build with few steps reaches its limit",
}

SEED = 6717
LEAST_SECONDS = 0.3
SECONDS = {
    "random_calls": 3,
    "many_ranks": 1.5,
    "hosts": 2.5,
    "intruder": 1.5,
    "heap": 1,
    "heap_threads": 1,
}
LONG = 20.0  # seconds of each in the rare test
Check = Callable[[str, float], None]

pytestmark = pytest.mark.alone  # threads that spin and sleepers that are timed


@pytest.fixture(scope="module", params=BUILDS)
def check(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Check:
    """check(test, seconds) runs one test of the program and fails with its output."""
    folder, flags = tmp_path_factory.mktemp(request.param), BUILDS[request.param]
    cc, empty, program = tool_at("cc"), folder / "empty.c", folder / "core_test"
    empty.write_text("int main(void) { return 0; }\n")
    tried = run(cc, *flags, empty, "-o", folder / "empty")
    if tried.returncode == 0:
        tried = run(folder / "empty")
    if tried.returncode != 0:
        pytest.skip(f"no program of build {request.param} runs here: {tried.stdout.strip()}")
    build(program, *flags)

    def checked(test: str, seconds: float) -> None:
        if test in WITHOUT_THREAD_SANITIZER and request.param == "thread":
            pytest.skip(WITHOUT_THREAD_SANITIZER[test])
        done = run(program, test, str(SEED), str(seconds))
        assert done.returncode == 0, f"{TESTS[test]}: {done.returncode}\n{done.stdout}"

    return checked


@pytest.mark.parametrize("test", TESTS)
def test_core_alone(test: str, check: Check) -> None:
    check(test, SECONDS.get(test, LEAST_SECONDS))


@pytest.mark.rare
@pytest.mark.parametrize("test", SECONDS)
def test_core_alone_for_longer(test: str, check: Check) -> None:
    check(test, LONG)

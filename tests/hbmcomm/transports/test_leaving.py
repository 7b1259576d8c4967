"""A rank that leaves takes nothing away that a slower rank still reads, however it leaves."""

import re
from pathlib import Path

import pytest

from tests.starting import Start

HERE = Path(__file__).parent
PROGRAM = HERE / "ranks" / "leaving.py"
ON_HOSTS = HERE.parent / "hierarchical" / "ranks" / "on_hosts.py"
MIB = 2**20
WAYS = ("collected", "error in with", "freed", "sys.exit", "exception", "signal")
CALLS = ("Reduce", "Allreduce", "Scan", "Allreduce_init")
CASES = [(way, CALLS[number % len(CALLS)]) for number, way in enumerate(WAYS)]
CASES += [("collected", "Allreduce"), ("error in with", "Reduce")]
WORDS: dict[str, tuple[str, ...]] = {
    "private": (),
    "arena": ("--sent-from", "arena"),
    "device": ("--device",),
    "one host": ("--transport", "hierarchical"),
    "two hosts": ("--transport", "hierarchical"),
}
"""What the program takes for each of the places in which ranks may be, or have their arrays."""
IN_CI = {
    *(("private", way, call) for way, call in CASES if way in ("exception", "signal")),
    ("private", "collected", "Reduce"),
    ("device", "error in with", "Allreduce"),
    ("two hosts", "collected", "Reduce"),
}
"""Random programs leave in the other ways."""
ALL = [(place, *case) for place in WORDS for case in CASES]
ERROR = re.compile(r"rank \d: rank \d (died|gave up|has left)")

pytestmark = pytest.mark.ranks


@pytest.mark.parametrize(
    ("place", "way", "call"),
    [pytest.param(*case, marks=[pytest.mark.rare] * (case not in IN_CI)) for case in ALL],
)
def test_a_slower_rank_still_gets_the_right_data(
    mpirun: Start, slow_pages: Path, tmp_path: Path, place: str, way: str, call: str
) -> None:
    """A rank of another host may also hear of an error that another rank had after this call."""
    words = [str(PROGRAM), way, call, str(slow_pages), *WORDS[place]]
    if place == "device":
        words.append(str(tmp_path / "device"))
        with (tmp_path / "device").open("wb") as device:
            device.truncate(128 * MIB)
    if place == "two hosts":
        ranks, program, words = 3, ON_HOSTS, ["0,0,1", *words]
    else:
        ranks, program, words = 2, PROGRAM, words[1:]
    done = mpirun(program, ranks, *words, code=None, survivors=True)
    may_fail = way == "signal" or (place == "two hosts" and way == "error in with")
    for rank in range(1, ranks):
        (line,) = re.findall(rf"^rank {rank}: .*$", done.output, re.MULTILINE)
        assert line.endswith(": right") or (may_fail and ERROR.match(line)), done.output


def test_a_close_that_a_signal_interrupts_takes_nothing_away(mpirun: Start) -> None:
    freed = {"MALLOC_PERTURB_": "165"}  # what is freed is overwritten
    done = mpirun(HERE / "ranks" / "interrupted_close.py", 2, env=freed, timeout=60)
    assert done.output.count("interrupted 1") == 2, done.output

"""torch's own tests of torch.distributed pass on the backend "hbm".

They come with torch's wheel. CI runs four of them, of the most used calls, with 3 ranks. All of
them with 2, 3 and 4 ranks take 5 to 8 minutes and carry the mark `rare`. Which tests are left out,
and why: torch_suite.py, which runs on gloo too, for comparison.
"""

import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "torch_suite.py"

QUICK = {
    3: [
        *("test_all_gather", "test_all_reduce_sum", "test_broadcast", "test_send_recv"),
        *("!*cuda*", "!*nccl*", "!*_autograd_profiler", "!*_coalesced_full_group*"),
    ],
    4: ["test_*_object*", "test_*_to_all*group", "test_DistributedDataParallelCPU", "!*cuda*"],
}
"""Patterns of names by numbers of ranks."""
SUITES = [
    *(
        pytest.param(ranks, least, QUICK[ranks], marks=[pytest.mark.rare] * (ranks > 3))
        for ranks, least in ((3, 4), (4, 8))
    ),
    *(
        pytest.param(ranks, least, [], marks=pytest.mark.rare, id=f"{ranks}-all")
        for ranks, least in ((2, 90), (3, 110), (4, 110))
    ),
]
"""Ranks, how many tests must have run and not skipped themselves, and which; none: all."""

COUNTS = r"^hbm, {ranks} ranks: (\d+) run, 0 failed, \d+ skipped by themselves, \d+ left out$"

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(900)]


@pytest.mark.parametrize(("ranks", "least", "patterns"), SUITES)
def test_torchs_own_tests_pass(built: None, ranks: int, least: int, patterns: list[str]) -> None:
    pytest.importorskip("expecttest", reason="torch's tests need it: pip install expecttest")
    command = [sys.executable, str(PROGRAM), "hbm", str(ranks), *patterns]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=250 if patterns else 800
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(COUNTS.format(ranks=ranks), done.stdout, re.MULTILINE)
    assert counts, done.stdout
    assert int(counts[1]) >= least


@pytest.mark.rare
def test_tensors_and_networks_sharded_over_a_mesh_give_what_one_process_gives(
    torch_ranks: Callable[..., Any],
) -> None:
    for output in torch_ranks("sharded", 4).right():
        assert output.endswith("right\n")  # after warnings of torch about DTensor on CPUs

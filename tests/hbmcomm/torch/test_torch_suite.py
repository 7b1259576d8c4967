"""torch's own tests of torch.distributed pass on the backend "hbm".

They come with torch's wheel. Run here are those of collectives, messages, groups and DDP with 3
ranks, and a few with 4. All of them with 2, 3 and 4 ranks, 5 to 8 minutes:
    HBMCOMM_TORCH_TESTS=all .venv/bin/pytest tests/hbmcomm/torch/test_torch_suite.py
Which tests are left out, and why: torch_suite.py, which runs on gloo too, for comparison.
"""

import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

PROGRAM = Path(__file__).parent / "torch_suite.py"
ALL = os.environ.get("HBMCOMM_TORCH_TESTS") == "all"

QUICK = {
    3: [
        *("test_all_*", "test_barrier*", "test_broadcast*", "test_gather*", "test_reduce_*"),
        *("test_scatter*", "test_send_recv*", "test_isend*", "test_irecv", "test_batch_isend*"),
        *("test_sparse*", "test_monitored_barrier_gloo*", "test_destroy_*", "test_get_rank*"),
        *("test_DistributedDataParallelCPU*", "test_accumulate_gradients*", "test_static_graph*"),
        *("!*cuda*", "!*nccl*", "!*_autograd_profiler", "!*_coalesced_full_group*"),
    ],
    4: ["test_*_object*", "test_*_to_all*group", "test_DistributedDataParallelCPU", "!*cuda*"],
}
"""Patterns of names by numbers of ranks."""

LEAST = {2: 90, 3: 110, 4: 110} if ALL else {3: 80, 4: 8}
"""How many tests must have run, and not skipped themselves."""

COUNTS = r"^hbm, {ranks} ranks: (\d+) run, 0 failed, \d+ skipped by themselves, \d+ left out$"

pytestmark = [pytest.mark.ranks, pytest.mark.timeout(900)]


@pytest.mark.parametrize("ranks", (2, 3, 4) if ALL else QUICK)
def test_torchs_own_tests_pass(built: None, ranks: int) -> None:
    pytest.importorskip("expecttest", reason="torch's tests need it: pip install expecttest")
    command = [sys.executable, str(PROGRAM), "hbm", str(ranks)]
    if not ALL:
        command += QUICK[ranks]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=800 if ALL else 250
    )
    print(done.stdout)
    assert done.returncode == 0, done.stdout + done.stderr
    counts = re.search(COUNTS.format(ranks=ranks), done.stdout, re.MULTILINE)
    assert counts, done.stdout
    assert int(counts[1]) >= LEAST[ranks]


def test_tensors_and_networks_sharded_over_a_mesh_give_what_one_process_gives(
    torch_ranks: Callable[..., Any],
) -> None:
    for output in torch_ranks("sharded", 4).right():
        assert output.endswith("right\n")  # after warnings of torch about DTensor on CPUs

"""The backend "hbm" of torch.distributed, on ranks that share memory and use no MPI.

More kills than in CI: HBMCOMM_TORCH_KILLS=300 pytest tests/hbmcomm/torch/test_backend.py -k killed
"""

import os
import random
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.ranks]

Start = Callable[..., Any]


@pytest.mark.parametrize(
    "ranks", [2, *(pytest.param(ranks, marks=pytest.mark.rare) for ranks in (1, 3))]
)
def test_every_operation_gives_the_right_result_for_every_type(
    ranks: int, torch_ranks: Start
) -> None:
    assert torch_ranks("operations", ranks).right() == ["right\n"] * ranks


@pytest.mark.rare
def test_four_groups_serve_two_threads_at_once_in_order(torch_ranks: Start) -> None:
    assert torch_ranks("at_once", 2, "1", "300").right() == ["right\n"] * 2


@pytest.mark.rare
@pytest.mark.parametrize(
    ("how", "words"),
    [("late", "longer than its timeout of 1000 ms on rank"), ("left", "rank 2 has left")],
)
def test_a_rank_that_does_not_come_is_named_within_two_seconds(
    how: str, words: str, torch_ranks: Start
) -> None:
    ranks = torch_ranks("ends", 3, how)
    for output in ranks.outputs[:2]:
        seconds, _, text = output.partition(" ")
        assert float(seconds) <= 2.0, output
        if how != "late" or "was interrupted" not in text:
            assert words in text, output
    assert how != "late" or any(words in output for output in ranks.outputs)


@pytest.mark.parametrize(
    "seed",
    [
        pytest.param(seed, marks=[pytest.mark.rare] * (seed > 0))
        for seed in range(int(os.environ.get("HBMCOMM_TORCH_KILLS", "2")))
    ],
)
def test_when_a_rank_is_killed_in_a_step_all_others_raise_and_nothing_stays(
    seed: int, torch_ranks: Start
) -> None:
    draw = random.Random(seed)
    victim, delay = draw.randrange(3), draw.uniform(0, 0.5)
    ranks = torch_ranks("killed", 3, str(delay), str(victim))
    assert [code for rank, code in enumerate(ranks.codes) if rank != victim] == [0, 0]
    for rank in {0, 1, 2} - {victim}:
        seconds, _, text = ranks.outputs[rank].partition(" ")
        assert float(seconds) <= 2.0, text
        assert f"rank {victim} died" in text, text


@pytest.mark.rare
@pytest.mark.parametrize("way", ["destroyed", "sys.exit", "exception", "signal"])
def test_a_slower_rank_still_gets_the_right_data_of_one_that_leaves(
    way: str, slow_pages: Path, torch_ranks: Start
) -> None:
    output = torch_ranks("leaving", 2, way, str(slow_pages)).outputs[1]
    assert output.startswith("right 4") or (way == "signal" and "rank 0 died" in output), output


def test_a_program_ends_although_an_operation_of_it_never_will(torch_ranks: Start) -> None:
    ranks = torch_ranks("unfinished", 2)
    assert ranks.codes == [0, 0] and ranks.outputs[0] == "right\n", ranks.outputs


def test_where_one_rank_cannot_build_its_part_all_ranks_say_so(torch_ranks: Start) -> None:
    assert torch_ranks("unbuilt", 2).right() == ["rank 1: no compiler\n"] * 2


def test_gradients_lie_in_the_arena_and_the_loss_is_that_of_gloo(torch_ranks: Start) -> None:
    assert torch_ranks("zero_copy", 2).right() == ["right\n"] * 2


@pytest.mark.rare
def test_bare_operators_serve_eager_and_compiled_programs(torch_ranks: Start) -> None:
    assert torch_ranks("operators", 2).right() == ["right\n"] * 2


@pytest.mark.rare
def test_destroyed_groups_leave_no_descriptors_and_threads(torch_ranks: Start) -> None:
    """Four hundred groups need no more of them than one."""
    assert torch_ranks("many_groups", 2, "400", "64").right() == ["right\n"] * 2


def test_groups_that_torch_wraps_and_tensors_that_grow_are_served(torch_ranks: Start) -> None:
    assert torch_ranks("wrapped", 2).right() == ["right\n"] * 2


@pytest.mark.rare
def test_a_thread_makes_its_large_tensors_in_a_kind_of_memory(
    monkeypatch: pytest.MonkeyPatch, torch_ranks: Start
) -> None:
    monkeypatch.setenv("MEMKIND_HBW_NODES", "0")
    assert torch_ranks("kinds", 1).right() == ["right\n"]


@pytest.mark.rare
def test_memory_without_a_tensor_is_in_the_kind_too(
    monkeypatch: pytest.MonkeyPatch, torch_ranks: Start, tmp_path: Path
) -> None:
    import torch
    from torch.utils import cpp_extension

    library = tmp_path / "raw_allocation.so"
    words = ["c++", "-std=c++20", "-O0", "-shared", "-fPIC"]
    include = [f"-I{path}" for path in cpp_extension.include_paths()[:1]]
    link = [f"-L{Path(torch.__file__).parent / 'lib'}", "-lc10"]
    source = str(Path(__file__).with_name("raw_allocation.cpp"))
    subprocess.run([*words, *include, source, "-o", str(library), *link], check=True)
    monkeypatch.setenv("MEMKIND_HBW_NODES", "0")
    assert torch_ranks("raw", 1, str(library)).right() == ["right\n"]

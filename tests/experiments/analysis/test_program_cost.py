"""What is said of stored runs of a user's program."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.analysis.program_cost import causes, cost_of
from experiments.model.program import BANDS, CallCount
from experiments.results.program_runs import (
    ArmRun,
    ProgramRuns,
    read_runs,
    write_block,
    write_header,
)
from plots.html.program import page, text
from plots.text.program_answer import answers, conditions, differs
from tests.stored_programs import ALLOWS, habitat, stored


def test_a_slowdown_of_three_percent_is_found_and_none_is_bounded() -> None:
    for factor, expected in ((1.03, True), (1.0, False)):
        cost = cost_of(stored(factor))
        docker = cost.costs[1]
        assert differs(docker, cost) is expected
        assert docker.ratio.low <= factor <= docker.ratio.high
        assert cost.twin and cost.twin.low <= 1 <= cost.twin.high
        assert cost.floor < 0.01


def test_calls_that_take_longer_are_named_with_their_sizes() -> None:
    docker = cost_of(stored(1.25, slow=2)).costs[1]
    (call,) = docker.slower
    assert call.name == "Allreduce, up to 1 MiB"
    assert call.ratio.value == pytest.approx(2)
    assert call.calls == 100
    assert docker.mpi == pytest.approx(2)
    assert not cost_of(stored(1.25)).costs[1].slower


def test_a_window_is_compared_by_its_progress() -> None:
    runs = stored(1.0)
    header = replace(runs.header, request=replace(runs.header.request, seconds=4.0))
    half = CallCount(0, [0, 0, 0, 0, 50, 0], [0] * BANDS)
    blocks = tuple(
        replace(
            block,
            runs=(*block.runs[:2], replace(block.runs[2], calls={"Allreduce": half})),
        )
        for block in runs.blocks
    )
    docker = cost_of(ProgramRuns(runs.folder, header, blocks)).costs[1]
    assert docker.ratio.value == pytest.approx(2, rel=0.01)


def test_each_difference_is_a_cause_with_its_remedy() -> None:
    differences: list[tuple[dict[str, Any], str, str]] = [
        ({"allows": ALLOWS | {"reading": 1}}, "SYS_PTRACE", "MPI"),
        ({"allows": ALLOWS | {"shm": 2**20}}, "--shm-size 192m", "MPI"),
        ({"allows": ALLOWS | {"placing": 1}}, "SYS_NICE", "work"),
        ({"allows": ALLOWS | {"cpus": 1}}, "no --cpuset-cpus", ""),
        ({"quota": 1.0}, "--cpus 2", ""),
        ({"libraries": {"BLAS": "libblas.so.3"}}, "the same BLAS", "work"),
    ]
    for here, words, part in differences:
        (cause,) = causes(habitat("docker-default", **here), habitat("host"), 2)
        assert words in cause.remedy and cause.part == part, words


def test_what_is_alike_is_no_cause() -> None:
    assert not causes(habitat("docker-default"), habitat("host"), 2)
    unknown = habitat("host", allows={})
    assert not causes(habitat("docker-default", allows=ALLOWS | {"reading": 1}), unknown, 2)


def test_the_answer_names_the_cost_the_call_the_cause_and_the_remedy() -> None:
    closed = habitat("docker-default", allows=ALLOWS | {"reading": 1})
    cost = cost_of(stored(1.25, here=closed, slow=2))
    ((name, sentences),) = answers(cost)
    text = "\n".join(sentences)
    assert name == "docker-default"
    assert "takes longer than in host: +25 % to +25 %" in text
    assert "Allreduce, up to 1 MiB: 2.00 times as long" in text
    assert "Possible cause: its ranks may not read each other's memory" in text
    assert "--profiles tuned" in text
    assert any("over itself" in line for line in conditions(cost))


def test_a_difference_that_costs_nothing_is_not_called_a_cause() -> None:
    closed = habitat("docker-default", allows=ALLOWS | {"reading": 1})
    ((_, sentences),) = answers(cost_of(stored(1.0, here=closed)))
    text = "\n".join(sentences)
    assert "takes as long as in host, as far as this can tell" in text
    assert "without a cost that is seen beyond noise" in text
    assert "cause" not in text


def test_few_blocks_give_a_ratio_and_no_claim() -> None:
    cost = cost_of(stored(1.5, blocks=3))
    ((_, sentences),) = answers(cost)
    assert "1.50 times as long" in sentences[0]
    assert "too few for an interval" in sentences[0]


def test_what_is_stored_is_read_as_it_was(tmp_path: Path) -> None:
    runs = stored(1.1)
    write_header(tmp_path, runs.header)
    for block in runs.blocks:
        write_block(tmp_path, block)
    assert read_runs(tmp_path) == replace(runs, folder=tmp_path)


def test_a_placement_of_the_cpus_that_changes_is_named_with_how_alike_the_slices_met_it() -> None:
    runs = stored(1.0)
    blocks = [
        replace(
            block,
            runs=tuple(
                replace(run, lines=(60, 300, 0) if run.arm != "docker-default" else (66, 330, 0))
                for run in block.runs
            ),
        )
        for block in runs.blocks
    ]
    cost = cost_of(replace(runs, blocks=tuple(blocks)))
    assert cost.lines and cost.lines.apart == pytest.approx(0.1)
    (line,) = [line for line in conditions(cost) if "cache line" in line]
    assert "60 to 330 ns" in line
    assert "to within 10.0 %" in line
    assert not any("cache line" in line for line in conditions(cost_of(runs)))


def test_a_program_without_mpi_is_not_told_what_only_an_mpi_needs() -> None:
    here = habitat("docker-default", ranks=0, allows={**ALLOWS, "reading": 1, "placing": 1})
    there = habitat("host", ranks=0)
    (cause,) = causes(here, there, 1)
    assert "set_mempolicy" in cause.text
    both = causes(replace(here, ranks=2), replace(there, ranks=2), 2)
    assert "process_vm_readv" in both[0].text


def test_another_number_of_threads_is_named() -> None:
    here = habitat("docker-default", variables={"OMP_NUM_THREADS": "2", "OMPI_MCA_plm": "x"})
    (cause,) = causes(here, habitat("host", variables={"MALLOC_ARENA_MAX": "1"}), 2)[:1]
    assert cause.text == "MALLOC_ARENA_MAX is not set, and in host 1"
    texts = [reason.text for reason in causes(here, habitat("host"), 2)]
    assert texts == ["OMP_NUM_THREADS is 2, and in host not set"]
    hosts = habitat("hosts", variables={"I_MPI_FABRICS": "shm:ofi"}, hosts=2, rate="1gbit")
    (cause,) = causes(hosts, habitat("host"), 2)
    assert "passes links of 1gbit" in cause.text
    (cause,) = causes(replace(hosts, hosts=0), habitat("host"), 2)
    assert cause.text == "I_MPI_FABRICS is shm:ofi, and in host not set"


def test_polls_are_no_progress_and_one_measure_serves_all_runs() -> None:
    """A slower message is polled for more often; a figure that one run lacks is used of none."""
    runs = stored(1.0)

    def counted(run: ArmRun) -> ArmRun:
        slow = run.arm == "docker-default"
        polls = CallCount(0, [9000 if slow else 100, 0, 0, 0, 0, 0], [1] * BANDS)
        steps = CallCount(0, [50 if slow else 100, 0, 0, 0, 0, 0], [1] * BANDS)
        metric = None if slow else 1e6
        return replace(run, seconds=1.0, metric=metric, calls={"Test": polls, "Send": steps})

    blocks = [replace(block, runs=tuple(map(counted, block.runs))) for block in runs.blocks]
    request = replace(runs.header.request, seconds=1.0, metric="x (.*)")
    header = replace(runs.header, request=request)
    cost = cost_of(replace(runs, header=header, blocks=tuple(blocks)))
    assert cost.costs[1].ratio.value == pytest.approx(2)


def test_a_campaign_without_a_run_of_the_reference_has_no_answer() -> None:
    runs = stored(1.2)
    lost = [replace(block, runs=block.runs[2:], lost={"host": "it ended"}) for block in runs.blocks]
    alone = replace(runs, blocks=tuple(lost))
    assert answers(cost_of(alone)) == []
    assert text(alone)[0].startswith("No run")
    assert text(replace(runs, blocks=()))[0].startswith("No run")
    assert "host" in page(alone)


def test_a_difference_without_an_interval_is_not_said_to_cost_nothing() -> None:
    here = habitat("docker-default", allows={**ALLOWS, "reading": 1})
    few = [line for _, lines in answers(cost_of(stored(2.0, 2, here))) for line in lines]
    assert any(line.startswith("What differs, whatever it costs") for line in few)
    assert not any("nothing" in line for line in few)

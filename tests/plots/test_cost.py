"""What a container costs an operation, and Python a call: one sentence, no more than is known."""

from collections.abc import Callable
from dataclasses import replace

import pandas as pd

from plots.answers import answers
from plots.cost import NONE, brief, container, cost, files, isolation, losses, overall, python
from plots.findings import Findings
from plots.paths import Loss

Find = Callable[..., Findings]
ARMS = tuple(
    f"docker-{profile}-{layout}"
    for layout in ("one", "isolated")
    for profile in ("default", "tuned")
)


def many(findings: Find, mpis: tuple[str, ...] = ("openmpi", "mpich")) -> Findings:
    return findings(
        arms=("host", "host-again", *ARMS),
        mpis=mpis,
        kinds=("regular",),
        transports=("direct", "mpi"),
        blocks=6,
    )


def decided(found: Findings, ratio: float, verdict: str) -> Findings:
    """The same with every container cell, and all sizes together, at that ratio and verdict."""
    for frame in (found.containers, found.groups):
        frame["ratio"], frame["verdict"] = ratio, verdict
        frame["low"], frame["high"] = ratio - 0.01, ratio + 0.01
    return found


def test_a_container_is_named_by_layout_engine_and_profile() -> None:
    assert container("docker-tuned-per-rank") == "a container per rank (Docker, tuned)"
    assert container("charliecloud") == "one container (Charliecloud)"


def test_the_images_files_are_told_apart_from_the_container(findings: Find) -> None:
    arms = ("host", "host-again", "userland", "docker-tuned-one")
    found = findings(arms=arms, kinds=("regular",), transports=("direct",), blocks=6)
    said, _ = cost(found, "bcast")
    assert said.startswith("In one container (Docker, tuned): with direct, ")
    assert files(found).startswith("Over the host's: with direct, ")
    first, *others = [each.question for each in answers(found) if "cost" in each.question]
    assert first == "What do the image's files cost without a container: its Python, its libc?"
    assert others[0] == "What does a container cost over the same files without one?"
    assert others[1].startswith("What does a container cost Broadcast")
    (said,) = isolation(found)
    assert said.startswith("In one container (Docker, tuned): with direct, ")
    alone = answers(findings(arms=arms[:3], kinds=("regular",), transports=("direct",)))
    assert not [each for each in alone if each.question.startswith("What does a container cost")]


def test_the_tuned_container_comes_first_and_the_worst_last(findings: Find) -> None:
    said, _ = cost(many(findings), "bcast")
    assert said.startswith("In one container (Docker, tuned): with direct, slower in 2 of 8 cells")
    assert "The worst is mpi in isolated containers (Docker, default), 2" in said
    assert "4 MiB, Open MPI)" in said
    assert said.endswith("Seen in 6 paired blocks; a claim needs 10.")


def test_what_a_lost_way_cost_is_told_for_its_mpi_and_arm(findings: Find) -> None:
    loss = Loss("openmpi", "docker-default-one", ("single copy",), "kcmp refused", "", "")
    (said,) = losses(replace(many(findings), losses=(loss,)))
    assert said.startswith(
        "What it cost Open MPI in one container (Docker, default), without single copy, as time "
        "over the host's: Broadcast 2.1"
    )
    assert said.count("× at 4 MiB") == 3
    absent = replace(loss, mpi="impi")
    assert losses(replace(many(findings), losses=(absent,))) == ()


def test_a_cost_within_two_per_cent_is_said_as_such(findings: Find) -> None:
    said, grid = cost(decided(findings(transports=("direct",)), 1.0, "equivalent"), "bcast")
    assert said == "In one container (Docker, tuned): with direct, no cost larger than 2 %."
    assert grid is None


def test_what_is_undecided_is_not_called_equal(findings: Find) -> None:
    said, _ = cost(decided(findings(transports=("direct",)), 1.01, "undecided"), "bcast")
    assert NONE not in said
    assert "with direct, undecided in all of 8 cells (ratios 1.01; about 7 paired blocks" in said


def test_what_is_undecided_is_told_what_would_decide_it(findings: Find) -> None:
    found = decided(findings(transports=("direct",), blocks=10), 1.0, "undecided")
    found.containers["low"], found.containers["high"] = 0.96, 1.04
    said, _ = cost(found, "bcast")
    assert "; about 40 paired blocks would decide half of them)" in said
    noisy = replace(decided(found, 1.03, "undecided"), floor=0.05)
    said, _ = cost(noisy, "bcast")
    assert "; to decide them takes a quieter machine)" in said


def test_more_blocks_than_anybody_would_measure_are_no_advice(findings: Find) -> None:
    found = decided(findings(transports=("direct",)), 1.0199, "undecided")
    said, _ = cost(replace(found, floor=0.05), "bcast")
    assert "to decide them takes a quieter machine" in said


def test_without_any_interval_it_is_said_what_one_takes(findings: Find) -> None:
    said, _ = cost(findings(blocks=2), "bcast")
    assert "undecided in all of 8 cells" in said
    assert "an interval takes 6 paired blocks" in said


def test_a_faster_container_is_said_too(findings: Find) -> None:
    said, _ = cost(decided(findings(transports=("mpi",)), 0.8, "differs"), "gather")
    assert "with mpi, faster in all of 8 cells, down to 0.80 times (95 % interval 0.79" in said
    assert "The worst" not in said


def test_without_the_twin_nothing_differs_and_the_reason_is_told(findings: Find) -> None:
    said, _ = cost(findings(arms=("host", "docker-tuned-one")), "bcast")
    assert "no A/A pair, so its noise floor is unknown" in said
    assert "slower" not in said


def test_the_grid_has_a_line_per_arm_and_a_column_per_transport_and_mpi(findings: Find) -> None:
    _, grid = cost(many(findings), "bcast")
    assert grid is not None
    assert grid.head == [
        "container",
        "direct, Open MPI",
        "direct, MPICH",
        "mpi, Open MPI",
        "mpi, MPICH",
    ]
    assert [row[0] for row in grid.rows] == [
        "Docker, default, one container",
        "Docker, tuned, one container",
        "Docker, default, isolated containers",
        "Docker, tuned, isolated containers",
    ]
    lost = grid.rows[0]
    assert lost[3].startswith("2.1") and lost[3].endswith("× at 4 MiB")
    assert lost[4].startswith("1.2")


def test_a_cell_of_the_grid_says_the_largest_effect_or_none() -> None:
    frame = pd.DataFrame(
        {
            "ratio": [1.1, 0.5, 1.0],
            "bytes": [1024, 4096, 8192],
            "verdict": ["differs", "differs", "equivalent"],
        }
    )
    none = frame[:0]
    assert brief(frame, none) == "0.50× at 4 KiB"
    assert brief(frame[2:], none) == "≤ 2 %"
    assert brief(frame[2:].assign(verdict="undecided"), none) == "undecided, 1.00"
    assert brief(frame[2:].assign(verdict="undecided"), frame[2:]) == "≤ 2 % over all sizes"
    assert brief(none, none) == "–"


def test_all_sizes_together_may_say_what_no_single_one_can() -> None:
    group = pd.DataFrame({"ratio": [1.0], "low": [0.99], "high": [1.01], "verdict": ["equivalent"]})
    assert overall(group) == ", and no cost larger than 2 % over all sizes together"
    assert overall(pd.concat([group, group])) == overall(group)
    apart = group.assign(ratio=1.05, low=1.04, high=1.07, verdict="differs")
    assert overall(apart) == ", and over all sizes together 1.05 times (1.04 to 1.07), differs"
    assert overall(pd.concat([group, apart])) == ""
    assert overall(group.assign(low=float("nan"), verdict="undecided")) == ""


def test_what_python_costs_is_told_at_the_smallest_and_the_largest_size(findings: Find) -> None:
    said = python(findings(arms=("host", "host-again", "imb"), mpis=("impi",), blocks=10))
    assert said.startswith("With Intel MPI on the host, a buffer call from Python takes 1.2")
    assert said.count("at 1 KiB") == said.count("at 4 MiB") == 3
    assert "Broadcast 1.2" in said and "differs" in said
    few = python(findings(arms=("host", "host-again", "imb"), mpis=("impi",), blocks=2))
    assert few.count("(no interval, undecided)") == 6

"""What a container costs an operation, and Python a call: one sentence, no more than is known."""

from dataclasses import replace

import pandas as pd

from experiments.analysis.campaign import Campaign
from experiments.analysis.data_path import DataPaths, Loss
from plots.contents import answers
from plots.text.claims import brief, compared, cost, ending, files, losses, python, span, tails
from tests.campaigns import changed, find

ARMS = tuple(
    f"docker-{profile}-{layout}"
    for layout in ("one", "isolated")
    for profile in ("default", "tuned")
)


def many() -> Campaign:
    return find(
        arms=("host", "host-again", *ARMS),
        mpis=("openmpi", "mpich"),
        kinds=("regular",),
        transports=("direct", "mpi"),
        blocks=6,
    )


def decided(campaign: Campaign, ratio: float, verdict: str) -> Campaign:
    """Campaign with every container cell at that ratio and verdict."""
    frame = campaign.containers
    frame["ratio"], frame["verdict"], frame["floor"] = ratio, verdict, 0.002
    frame["low"], frame["high"] = ratio - 0.01, ratio + 0.02
    frame["joint_low"], frame["joint_high"] = ratio - 0.02, ratio + 0.03
    return campaign


def test_ratios_that_print_alike_are_one_number() -> None:
    assert span(pd.DataFrame({"ratio": [1.2, 1.04, 0.9]})) == "0.90 to 1.20"
    assert span(pd.DataFrame({"ratio": [1.041, 1.042]})) == "1.04"


def test_containers_are_held_against_the_same_files_without_one() -> None:
    arms = ("host", "host-again", "userland", "docker-tuned-one")
    campaign = find(arms=arms, kinds=("regular",), transports=("direct",), blocks=6)
    assert compared(campaign).base == "userland"
    assert compared(find()).base == "host"
    assert files(campaign).startswith("direct ")
    alone = answers(find(arms=arms[:3], kinds=("regular",), transports=("direct",)))
    assert not [reply for reply in alone if reply.question.startswith("What does a container cost")]


def test_the_tuned_container_comes_first_and_the_worst_last() -> None:
    message, _ = cost(many(), "bcast")
    assert message.startswith("Docker, tuned, one container: direct 1.2")
    assert "The worst is Docker, default, isolated containers with mpi: 2" in message
    assert ") at 4 MiB, Open MPI" in message
    assert "Seen in 6 paired blocks; a claim needs 10." in message


def test_what_intervals_hold_and_which_cells_have_none_is_said() -> None:
    few = decided(find(transports=("mpi",), kinds=("regular",), blocks=10), 1.5, "differs")
    assert cost(few, "bcast")[0].endswith(
        "Intervals in brackets hold for all cells at once (95 %)."
    )
    frame = compared(few).cells.copy()
    frame.loc[frame.index[:2], ["low", "high"]] = float("nan")
    assert f" 2 of {len(frame)} cells have no interval: fewer than 6 blocks." in ending(frame, few)
    frame["floor"] = float("nan")
    assert "Fewer than 8 A/A cells are below 4 KiB and 4 to 64 KiB and " in ending(frame, few)


def test_what_a_lost_way_cost_is_given_for_its_mpi_and_arm() -> None:
    loss = Loss("openmpi", "docker-default-one", ("single copy",))
    (message,) = losses(changed(many(), data_paths=DataPaths((loss,))))
    assert message.startswith(
        "Without single copy, Open MPI in Docker, default, one container takes, over the host: "
        "Bcast 2.1"
    )
    assert message.count("× at 4 MiB") == 3
    absent = replace(loss, mpi="impi")
    assert losses(changed(many(), data_paths=DataPaths((absent,)))) == ()


def test_what_does_not_differ_is_bounded() -> None:
    message, grid = cost(decided(find(transports=("direct",)), 1.0, "bounded"), "bcast")
    minus = "\N{MINUS SIGN}"
    bound = f"direct {minus}1.0 % to +2.0 % in every cell (widest at 1 KiB)."
    assert message == f"Docker, tuned, one container: {bound}"
    assert grid is None


def test_no_bound_is_narrower_than_the_floor() -> None:
    campaign = decided(find(transports=("direct",)), 1.0, "bounded")
    campaign.containers["floor"] = 0.03
    message, _ = cost(campaign, "bcast")
    assert "\N{MINUS SIGN}3.0 % to +3.0 % in every cell (widest at 1 KiB)." in message


def test_one_size_that_may_cost_more_is_the_bound_of_all() -> None:
    """The median over sizes would say +2.0 %."""
    campaign = decided(find(transports=("direct",)), 1.0, "bounded")
    campaign.containers.loc[campaign.containers["bytes"] == 16384, ["ratio", "high"]] = [1.2, 1.7]
    message, _ = cost(campaign, "bcast")
    assert "direct \N{MINUS SIGN}1.0 % to +70 % in every cell (widest at 16 KiB)." in message


def test_cells_beside_those_that_differ_are_bounded_too() -> None:
    campaign = decided(find(transports=("direct",), kinds=("regular",)), 1.0, "bounded")
    slow = campaign.containers["bytes"] == 4 * 2**20
    campaign.containers.loc[slow, ["ratio", "joint_low", "joint_high"]] = [1.5, 1.4, 1.6]
    campaign.containers.loc[slow, "verdict"] = "differs"
    message, _ = cost(campaign, "bcast")
    assert "direct 1.50 times (1.40 to 1.60) at 4 MiB, " in message
    assert "% elsewhere (widest at 1 KiB)." in message


def test_too_few_blocks_are_reported_how_many_to_run() -> None:
    message, _ = cost(find(blocks=2), "bcast")
    assert "in all of 4 cells, with no interval: 2 blocks of the 6 that it takes" in message
    alone, _ = cost(find(blocks=1), "bcast")
    assert "with no interval: 1 block of the 6 that it takes" in alone


def test_a_faster_container_is_said_too() -> None:
    message, _ = cost(decided(find(transports=("mpi",)), 0.8, "differs"), "gather")
    assert "mpi 0.80 times as long in all of 4 cells (0.80 times (0.78 to 0.83) at 1 KiB" in message
    assert "The worst" not in message


def test_without_the_twin_nothing_differs_and_the_reason_is_reported() -> None:
    message, _ = cost(find(arms=("host", "docker-tuned-one")), "bcast")
    assert "no A/A pair, so its noise floor is unknown" in message
    assert "The worst" not in message


def test_the_slowest_operations_are_an_answer_where_enough_were_timed() -> None:
    campaign = find()
    assert tails(campaign).startswith("Docker, tuned, one container: 1.2")
    same = campaign.tails.assign(ratio=1.0, low=0.9, high=1.1, verdict="bounded")
    assert "\N{MINUS SIGN}10 % to +10 % in all of " in tails(changed(campaign, tails=same))
    silent = campaign.tails.assign(low=float("nan"), high=float("nan"))
    assert tails(changed(campaign, tails=silent)) == ""


def test_the_grid_has_a_line_per_arm_and_a_column_per_transport_and_mpi() -> None:
    _, grid = cost(many(), "bcast")
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


def test_a_cell_of_the_grid_says_the_largest_effect_or_its_bound() -> None:
    frame = pd.DataFrame(
        {
            "ratio": [1.1, 0.5, 1.0],
            "low": [1.09, 0.4, 0.99],
            "high": [1.2, 0.6, 1.03],
            "floor": 0.01,
            "blocks": 6,
            "bytes": [1024, 4096, 8192],
            "verdict": ["differs", "differs", "bounded"],
        }
    )
    assert brief(frame) == "0.50× at 4 KiB"
    assert brief(frame[2:]) == "\N{MINUS SIGN}1.0 % to +3.0 %"
    few = frame[2:].assign(low=float("nan"), high=float("nan"), blocks=2)
    assert brief(few) == "1.00×, with no interval: 2 blocks of the 6 that it takes"
    assert brief(frame[:0]) == "–"


def test_what_python_costs_is_reported_at_the_smallest_and_the_largest_size() -> None:
    message = python(find(arms=("host", "host-again", "imb"), mpis=("impi",), blocks=10))
    assert message.startswith("With Intel MPI and 2 ranks on the host, a buffer call")
    assert "from Python takes 1.2" in message
    assert message.count("at 1 KiB") == message.count("at 4 MiB") == 3
    assert "Bcast 1.2" in message
    few = python(find(arms=("host", "host-again", "imb"), mpis=("impi",), blocks=2))
    assert few.count("(no interval)") == 6

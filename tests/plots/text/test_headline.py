"""The headline claims what the cells show, names why, and is silent where nothing is known."""

from dataclasses import replace

from experiments.analysis.campaign import Campaign
from experiments.analysis.data_path import DataPaths, Loss
from plots.text.headline import NOTHING_SAID, headline
from tests.campaigns import changed, find

ARMS = ("host", "host-again", "docker-default-one", "docker-tuned-one")
LOSS = Loss("openmpi", "docker-default-one", ("single copy",))


def campaign(blocks: int = 6) -> Campaign:
    return changed(
        find(arms=ARMS, kinds=("regular",), transports=("direct", "mpi"), blocks=blocks),
        data_paths=DataPaths((LOSS,)),
    )


def opening(measured: Campaign) -> str:
    return " ".join(headline(measured).sentences)


def test_it_opens_with_the_bound_then_what_a_lost_way_costs_then_the_remedy() -> None:
    kept = replace(LOSS, kept_in=("docker-tuned-one",), others=True)
    said = headline(changed(campaign(), data_paths=DataPaths((kept,))))
    bounded, lost, remedy = said.sentences
    assert bounded.startswith("Docker, tuned changes an MPI's times by ")
    assert " in every single cell (widest at 4 MiB, Gather), and every container changes" in bounded
    assert bounded.endswith(", over the host.")
    assert lost.startswith("Docker, default makes Open MPI's ")
    assert ") as long (4 MiB), because single copy is lost: large messages are copied" in lost
    assert remedy.startswith(
        "The profile tuned gets it back (for a job of your own: --security-opt"
    )
    conditions = " ".join(said.conditions)
    assert "3 of 12 are slower, most of all Open MPI's " in conditions
    assert conditions.endswith("Seen in 6 paired blocks; a claim needs 10.")


def test_without_a_loss_no_reason_is_made_up() -> None:
    message = opening(changed(campaign(), data_paths=DataPaths()))
    assert message.startswith("Docker, default and Docker, tuned change an MPI's times")
    assert "because" not in message


def test_a_lost_way_that_makes_another_size_faster_says_so() -> None:
    mixed = campaign(blocks=10)
    mixed.containers["verdict"], mixed.containers["ratio"] = "differs", 1.5
    mixed.containers[["joint_low", "joint_high"]] = [1.4, 1.6]
    small = mixed.containers["bytes"] < 2**20
    mixed.containers.loc[small, ["ratio", "joint_low", "joint_high"]] = [0.67, 0.6, 0.7]
    _, lost = headline(mixed).sentences
    assert "up to 1.50 times (1.40 to 1.60) as long (4 MiB), but " in lost
    assert " 0.67 times (0.60 to 0.70) as long at " in lost


def test_cells_that_are_faster_are_counted_too() -> None:
    faster = campaign()
    faster.containers["verdict"], faster.containers["ratio"] = "differs", 0.8
    assert "24 of 24 are faster, most of all Open MPI's " in " ".join(headline(faster).conditions)


def test_each_lost_way_has_its_own_reason_and_small_messages_none() -> None:
    arms = ("host", "host-again", "docker-default-one")
    lossy = find(
        arms=arms, kinds=("regular",), transports=("mpi",), mpis=("openmpi", "mpich"), blocks=10
    )
    apart = replace(LOSS, mpi="mpich", ways=("shared memory",), network="TCP")
    lossy.containers["verdict"], lossy.containers["ratio"] = "differs", 1.5
    lossy.containers[["joint_low", "joint_high"]] = [1.4, 1.6]
    lossy.containers.loc[lossy.containers["bytes"] == 1024, "ratio"] = 3.0
    (lost,) = headline(changed(lossy, data_paths=DataPaths((LOSS, apart)))).sentences[-1:]
    first, second = lost.split("; Docker")
    assert "Open MPI's" in first and "up to 1.50 times (1.40 to 1.60) as long" in first
    assert first.endswith("because single copy is lost: large messages are copied twice")
    assert "MPICH's" in second and "up to 3.00 times (1.40 to 1.60) as long (1 KiB" in second
    assert second.endswith("because shared memory is lost: messages go by TCP.")


def test_too_few_blocks_or_no_container_have_no_headline() -> None:
    assert headline(campaign(blocks=2)) == NOTHING_SAID
    assert headline(find(arms=("host", "host-again"), blocks=2)) == NOTHING_SAID
    assert headline(changed(campaign(), machine="Emulated machine.")) == NOTHING_SAID

"""The headline claims what the cells show, names why, and is silent where nothing is known."""

from dataclasses import replace

from experiments.analysis.findings.campaign import Findings
from experiments.analysis.findings.data_path import DataPaths, Loss
from plots.text.headline import headline
from tests.campaigns import find

ARMS = ("host", "host-again", "docker-default-one", "docker-tuned-one")
LOSS = Loss("openmpi", "docker-default-one", ("single copy",))


def campaign(blocks: int = 6) -> Findings:
    return replace(
        find(arms=ARMS, kinds=("regular",), transports=("direct", "mpi"), blocks=blocks),
        data_paths=DataPaths((LOSS,)),
    )


def test_a_lost_way_is_named_with_its_largest_cost_and_the_arm_without_it() -> None:
    message = " ".join(headline(campaign()))
    assert message.startswith("Docker, default makes Open MPI's ")
    assert ") as long (4 MiB), because single copy is lost" in message
    assert "because single copy is lost: large messages are copied twice." in message
    assert "Docker, tuned changes the time of an MPI's operations by " in message
    assert "Every container changes the time of the operations of direct by " in message
    assert "All over the host. " in message
    assert message.endswith("Seen in 6 paired blocks; a claim needs 10.")


def test_without_a_loss_no_reason_is_made_up() -> None:
    message = " ".join(headline(replace(campaign(), data_paths=DataPaths())))
    assert message.startswith("Docker, default and Docker, tuned change the time")
    assert "because" not in message


def test_a_bound_is_of_single_cells_and_those_that_differ_are_named() -> None:
    (tuned,) = (each for each in headline(campaign()) if each.startswith("Docker, tuned"))
    assert "as the bound of every single cell (widest at 4 MiB, Gather); " in tuned
    assert "3 of 12 are slower, most of all Open MPI's " in tuned


def test_cells_that_are_faster_are_named_too() -> None:
    found = campaign()
    found.containers["verdict"], found.containers["ratio"] = "differs", 0.8
    (tuned,) = (each for each in headline(found) if " and Docker, tuned change" in each)
    assert "24 of 24 are faster, most of all Open MPI's " in tuned


def test_each_lost_way_has_its_own_reason_and_small_messages_none() -> None:
    arms = ("host", "host-again", "docker-default-one")
    found = find(
        arms=arms, kinds=("regular",), transports=("mpi",), mpis=("openmpi", "mpich"), blocks=10
    )
    apart = replace(LOSS, mpi="mpich", ways=("shared memory",), network="TCP")
    found.containers["verdict"], found.containers["ratio"] = "differs", 1.5
    found.containers[["joint_low", "joint_high"]] = [1.4, 1.6]
    found.containers.loc[found.containers["bytes"] == 1024, "ratio"] = 3.0
    (message,) = headline(replace(found, data_paths=DataPaths((LOSS, apart))))[:1]
    assert "Open MPI's" in message and "up to 1.50 times (1.40 to 1.60) as long" in message
    assert message.endswith("because single copy is lost: large messages are copied twice.")
    other = headline(replace(found, data_paths=DataPaths((LOSS, apart))))[1]
    assert "MPICH's" in other and "up to 3.00 times (1.40 to 1.60) as long (1 KiB" in other
    assert other.endswith("because shared memory is lost: messages go by TCP.")


def test_too_few_blocks_or_no_container_have_no_headline() -> None:
    assert headline(campaign(blocks=2)) == []
    assert headline(find(arms=("host", "host-again"), blocks=2)) == []
    assert headline(replace(campaign(), machine="Emulated machine.")) == []

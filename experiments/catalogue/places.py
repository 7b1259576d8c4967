"""Which environments can be compared in one campaign: those of one place, and what runs there."""

from experiments.model.environment import LAYOUTS, VM_DOCKER
from experiments.model.experiment import Launches


def check(asked: Launches) -> None:
    """Refuse what cannot run in the place of the campaign, or has nothing to be compared with.

    Raises:
        ValueError: with what to leave out or to ask for.
    """
    names = ", ".join(map(str, asked.environments))
    if any(each.is_emulated for each in asked.environments):
        _check_emulated(asked, names)
    elif any(each.on_cluster for each in asked.environments):
        _check_on_cluster(asked, names)
    elif any(each.on_hosts for each in asked.environments):
        _check_on_hosts(asked, names)
    elif asked.nodes > 1:
        raise ValueError(
            f"{asked.nodes} nodes were asked for, and {names} has one: ask for --env slurm"
        )


def _uneven(asked: Launches, places: int) -> str:
    """The rank counts that places cannot share evenly."""
    return ", ".join(str(ranks) for ranks in asked.ranks if ranks % places)


def _check_on_cluster(asked: Launches, names: str) -> None:
    """Refuse what an allocation cannot run, or what nothing could be compared with."""
    here = [str(each) for each in asked.environments if not each.on_cluster]
    if here:
        raise ValueError(
            f"an allocation has other nodes than this machine, and the campaign has {names}: "
            f"leave out {', '.join(here)}"
        )
    if uneven := _uneven(asked, asked.nodes):
        raise ValueError(
            f"each of {asked.nodes} nodes has as many ranks, and the campaign asks for {uneven} "
            f"ranks: ask for multiples of {asked.nodes} with --ranks"
        )


def _check_on_hosts(asked: Launches, names: str) -> None:
    """Refuse what one set of emulated hosts cannot run."""
    sets = {(each.hosts, each.rate) for each in asked.environments}
    if len(sets) > 1:
        raise ValueError(
            f"a campaign on emulated hosts has one set of them, and {names} were asked for: "
            "measure each in a campaign of its own"
        )
    ((hosts, _),) = sets
    if asked.nodes > 1:
        raise ValueError(f"{names} says how many hosts there are: drop --nodes {asked.nodes}")
    if (most := max(asked.ranks)) < hosts:
        raise ValueError(
            f"{most} ranks leave some of {hosts} hosts empty in every launch: ask for {hosts} or "
            "more with --ranks"
        )
    contained = [str(each) for each in asked.environments if each.container]
    if contained and (uneven := _uneven(asked, hosts)):
        raise ValueError(
            f"each of {hosts} hosts has as many ranks in a container, and the campaign asks for "
            f"{uneven} ranks: ask for multiples of {hosts} with --ranks, or leave out "
            f"{', '.join(contained)}"
        )


def _check_emulated(asked: Launches, names: str) -> None:
    """Refuse what no guest can run, or what nothing could be compared with."""
    real = [str(each) for each in asked.environments if not each.machine]
    if real:
        raise ValueError(
            f"an emulated machine's times mean nothing beside real ones, and the campaign has "
            f"{names}: leave out {', '.join(real)}"
        )
    machines = tuple(dict.fromkeys(each.machine for each in asked.environments))
    for what, several, found in (
        ("emulated machine", "machines", machines),
        ("MPI, the one that its disk holds", "MPIs", asked.mpis),
    ):
        if len(found) > 1:
            raise ValueError(
                f"a campaign in a guest has one {what}, and {', '.join(found)} were asked for: "
                f"measure these {several} in campaigns of their own"
            )
    if asked.external:
        raise ValueError(
            f"{', '.join(asked.external)} in [launches] runs on the host, and the campaign has "
            f"{names}: leave out {', '.join(asked.external)}"
        )
    docker = [each for each in asked.environments if each.kind == VM_DOCKER]
    layouts = [name for name in asked.layouts if name != LAYOUTS[0]]
    if docker and layouts:
        raise ValueError(
            f"{docker[0]} has the layout one alone, as Docker there has no bridge to join several "
            f"containers; found {', '.join(layouts)}: pass --layouts one"
        )

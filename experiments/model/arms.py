"""What is compared within a block: environments in their profiles and layouts, or MPIs. Pure."""

from dataclasses import dataclass
from functools import cache
from itertools import product

from experiments.model.contender_names import (
    IN_PLACE,
    LACKING,
    MPI_ITSELF,
    NONBLOCKING,
    OBJECTS,
    PICKLE,
    PLAIN,
    TORCH_GROUPS,
)
from experiments.model.environment import (
    BARE_HOST,
    ENVIRONMENTS,
    LAYOUTS,
    PROFILES,
    RUNTIMES,
    EnvironmentId,
)
from experiments.model.experiment import MPIS_ARE_ARMS, Launches
from experiments.model.launch import EXTERNAL_MPI, HARNESS, Cell, Launch
from experiments.model.mpi_settings import (
    DEFAULT,
    HBW_POLICY_MPI,
    runs_nonblocking,
    settings,
)

HOST = "host"
"""The name of the reference arm: the host, or the nodes of an allocation, without a container."""
USERLAND = "userland"
"""The name of the arm of the image's files on the host, without a container."""
TWIN = "host-again"
"""The name of the A/A arm: the host once more, from other copies of its files."""
ALONE = "host-alone"
"""The name of the host's launch without the other arms; a campaign has one."""
ALONE_FROM = 6  # blocks of a campaign; with fewer nothing can be claimed of its ratios anyway


@dataclass(frozen=True)
class Arm:
    """What is compared within a block.

    Attributes:
        name: unique within a block, in figures and files; named() alone parses it.
        profile, layout: "" where there is no container.
        mpi, setting: where MPIs are the arms; else "".
        hbw_policy: that Intel MPI is asked for; "" for none.
    """

    name: str
    environment: EnvironmentId
    profile: str = ""
    layout: str = ""
    program: str = HARNESS
    mpi: str = ""
    setting: str = ""
    hbw_policy: str = ""

    def measures(self, cell: Cell) -> bool:
        """Whether a cell of its block is one of its own.

        In place, that is an allreduce, which PICKLE and OBJECTS cannot do. Other forms than that
        and plain calls are not those of torch. Where MPIs are the arms, contenders that are no MPI
        take part once beside each, in the forms that they have; direct's nonblocking calls, where
        it does those itself.
        """
        takes_objects = cell.transport in (PICKLE, OBJECTS)
        if cell.form == IN_PLACE and (cell.operation != "allreduce" or takes_objects):
            return False
        if self.hbw_policy:  # changes nothing of other transports
            return cell.transport in (MPI_ITSELF, PICKLE)
        torch_has = cell.form in (PLAIN, IN_PLACE)
        if not self.setting:
            return torch_has or cell.transport not in TORCH_GROUPS
        if cell.operation in LACKING.get(cell.transport, ()):
            return False
        if cell.transport in LACKING:
            return self.setting == DEFAULT and torch_has
        return cell.form != NONBLOCKING or runs_nonblocking(self.mpi, self.setting)


def arms(asked: Launches, mpi: str) -> list[Arm]:
    """The arms of a block with that MPI; where MPIs are the arms, of any block.

    An emulated machine has no twin: a noise floor is of use to times, and its times claim nothing.
    Arms in an allocation have the names that they have on one machine.
    """
    if asked.arms == MPIS_ARE_ARMS:
        return [
            Arm(
                flavour if setting == DEFAULT else f"{flavour}-{setting}",
                BARE_HOST,
                mpi=flavour,
                setting=setting,
            )
            for flavour in asked.mpis
            for setting in settings(flavour, flavour in asked.tuned)
        ]
    block_arms = []
    for env in asked.environments:
        if env.has_engine:
            block_arms += [
                Arm(f"{env.in_names}-{profile}-{layout}", env, profile, layout)
                for profile, layout in product(asked.profiles, asked.layouts)
            ]
        elif env.is_container:
            block_arms.append(Arm(env.container or env.in_names, env, layout=LAYOUTS[0]))
        else:
            block_arms.append(Arm(env.in_names if env.is_emulated else HOST, env))
    block_arms += [
        Arm(TWIN, arm.environment) for arm in block_arms if arm.name == HOST and asked.aa_pair
    ]
    if BARE_HOST in asked.environments:
        block_arms += [
            Arm(program.lower(), BARE_HOST, program=program)
            for program in asked.external
            if EXTERNAL_MPI.get(program, mpi) == mpi
        ]
        policies = asked.hbw_policies if mpi == HBW_POLICY_MPI else ()
        block_arms += [
            Arm(f"{HOST}-{policy.replace('_', '-')}", BARE_HOST, hbw_policy=policy)
            for policy in policies
        ]
    return block_arms


@cache
def named(name: str) -> Arm:
    """The arm of a name that arms() made, but for its program and policy of memory.

    Any other runs on the bare host.
    """
    for profile, layout in product(PROFILES, LAYOUTS):
        environment = name.removesuffix(f"-{profile}-{layout}")
        if environment != name:
            return Arm(name, EnvironmentId.named(environment), profile, layout)
    env = EnvironmentId.named(name)
    if not env.is_emulated and name not in RUNTIMES:
        return Arm(name, BARE_HOST)
    return Arm(name, env, layout=LAYOUTS[0] if env.is_container else "")


def in_container(arm: str) -> bool:
    """Whether the arm of a name runs in a container, or in the image's files without one."""
    return named(arm).layout != ""


def is_reference(launch: Launch) -> bool:
    """Whether a launch is one of the bare host, by which others are divided."""
    return launch.environment == BARE_HOST and launch.arm in (HOST, TWIN, ALONE)


def arm_key(arm: str) -> tuple[int, int, int, str]:
    """Sorts arms as readers see them: the host, then by layout, engine and profile."""
    parsed = named(arm)
    real = parsed.environment in ENVIRONMENTS
    return (
        LAYOUTS.index(parsed.layout) if parsed.layout else -1,
        ENVIRONMENTS.index(parsed.environment) if real else len(ENVIRONMENTS),
        PROFILES.index(parsed.profile) if parsed.profile else -1,
        arm,
    )

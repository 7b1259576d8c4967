"""What the arms of an experiment run with: MPIs, engines, images; or why they cannot be had.

Puts together what the other modules of this folder bring; starts no launch.
"""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import docker

from experiments.provision import bootstrap, engine, image, mpi, wheelhouse
from experiments.provision.image import Image
from experiments.spec import ENGINES, Experiment
from experiments.stages import Stages

LACKS = (engine.EngineMissing, bootstrap.BaseMissing, wheelhouse.WheelhouseIncomplete)
"""What a machine may lack for a container; an image that does not build is a defect instead."""


@dataclass(frozen=True)
class Equipment:
    """What was made ready.

    Attributes:
        clients: of the engines, by their names.
        images: by environment and MPI.
        missing: "environment: left out, why" of each that cannot be had.
    """

    clients: Mapping[str, docker.DockerClient] = field(default_factory=dict)
    images: Mapping[tuple[str, str], Image] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def without_missing(self, experiment: Experiment) -> Experiment:
        """The experiment with what is left; the host alone where nothing is."""
        left = [name for name in experiment.launches.environments if name not in self.missing]
        launches = replace(experiment.launches, environments=tuple(left) or ("host",))
        return replace(experiment, launches=launches)


@contextlib.contextmanager
def ready(experiment: Experiment, base: str, optional: bool, stages: Stages) -> Iterator[Equipment]:
    """Everything that the experiment's arms run with.

    Args:
        base: base image: "auto", "bootstrap" or an image's name.
        optional: leave out an environment that cannot be had, instead of failing.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    asked = experiment.launches
    for flavour in asked.mpis:
        mpi.ensure(flavour, stages.say)
    clients: dict[str, docker.DockerClient] = {}
    images: dict[tuple[str, str], Image] = {}
    missing: dict[str, str] = {}
    with contextlib.ExitStack() as stack:
        for name in [name for name in asked.environments if name in ENGINES]:
            try:
                with stages.stage("engine"):
                    client = stack.enter_context(engine.running())
                with stages.stage("image"):
                    images |= _images(client, name, base, asked.mpis, stages)
            except LACKS as lack:
                if not optional:
                    raise
                missing[name] = f"left out, {lack}"
                continue
            clients[name] = client
        yield Equipment(clients, images, missing)


def _images(
    client: docker.DockerClient, name: str, base: str, mpis: Sequence[str], stages: Stages
) -> dict[tuple[str, str], Image]:
    return {(name, flavour): image.ensure(client, base, flavour, stages.say) for flavour in mpis}

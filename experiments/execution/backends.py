"""What the arms of an experiment run with: MPIs, engines, images, guests; or why not.

Puts together what provision and guests bring; starts no launch.
"""

import contextlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

import docker

from experiments.console.stages import Stages
from experiments.emulation import description
from experiments.guests import boot, disk
from experiments.guests.boot import Guest
from experiments.model.environment import in_docker_there, machine_of
from experiments.model.experiment import Experiment
from experiments.processes import executables
from experiments.provision import podman
from experiments.provision.engines import engine
from experiments.provision.images import bootstrap, image, unpacked
from experiments.provision.images.image import Image
from experiments.provision.qemu import qemu_binary
from experiments.provision.wheels import mpi, wheelhouse

LACKS = (
    engine.EngineMissing,
    bootstrap.BaseMissing,
    wheelhouse.WheelhouseIncomplete,
    unpacked.UnpackingFailed,
    disk.GuestMissing,
    qemu_binary.QemuMissing,
)
"""What a machine may lack for a container; an image that does not build is a defect instead."""

RUNTIMES = {
    "userland": ("unshare", "util-linux"),
    "charliecloud": ("ch-run", "charliecloud"),
    "apptainer": ("apptainer", "apptainer"),
}
"""Environments that run an unpacked image without an engine: their program and its package."""


@dataclass(frozen=True)
class Equipment:
    """What was made ready.

    Attributes:
        clients: of the engines, by their names.
        images: by environment and MPI.
        guests: of emulated machines, by machine and MPI.
        missing: {environment or MPI: why it is left out}.
    """

    clients: Mapping[str, docker.DockerClient] = field(default_factory=dict)
    images: Mapping[tuple[str, str], Image] = field(default_factory=dict)
    guests: Mapping[tuple[str, str], Guest] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)

    def without_missing(self, experiment: Experiment) -> Experiment:
        """The experiment with what is left; the host alone where nothing is."""

        def left(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for name in names if name not in self.missing)

        asked = experiment.launches
        launches = replace(
            asked,
            environments=left(asked.environments) or ("host",),
            mpis=left(asked.mpis),
            tuned=left(asked.tuned),
        )
        return replace(experiment, launches=launches)


@contextlib.contextmanager
def ready(experiment: Experiment, base: str, optional: bool, stages: Stages) -> Iterator[Equipment]:
    """Everything that the experiment's arms run with.

    Args:
        base: base image: "auto", "bootstrap" or an image's name.
        optional: leave out an environment or one of several MPIs that cannot be had, instead of
            failing.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    missing: dict[str, str] = {}
    flavours = experiment.launches.mpis
    if not all(map(machine_of, experiment.launches.environments)):  # a guest has its image's
        for flavour in flavours:
            try:
                mpi.ensure(flavour, stages.say)
            except mpi.MpiMissing as lack:
                if not optional or len(missing) == len(flavours) - 1:
                    raise
                missing[flavour] = f"left out, {lack}"
    with contextlib.ExitStack() as stack:
        present = tuple(flavour for flavour in flavours if flavour not in missing)
        workshop = _Workshop(base, present, stages, stack)
        workshop.missing |= missing
        for name in experiment.launches.environments:
            try:
                workshop.equip(name)
            except LACKS as lack:
                if not optional:
                    raise
                workshop.missing[name] = f"left out, {lack}"
        yield Equipment(workshop.clients, workshop.images, workshop.guests, workshop.missing)


class _Workshop:
    """Makes one environment after the other ready; what was made serves the next, too."""

    def __init__(
        self, base: str, mpis: tuple[str, ...], stages: Stages, stack: contextlib.ExitStack
    ) -> None:
        self._base, self._mpis, self._stages, self._stack = base, mpis, stages, stack
        self._reached: dict[str, docker.DockerClient] = {}
        self._images: dict[str, Image] = {}
        self.clients: dict[str, docker.DockerClient] = {}
        self.images: dict[tuple[str, str], Image] = {}
        self.guests: dict[tuple[str, str], Guest] = {}
        self.missing: dict[str, str] = {}

    def equip(self, name: str) -> None:
        """Raises one of LACKS where the environment cannot be had."""
        if name == "docker":
            self.clients[name] = self._reach(name)
            self.images |= {(name, flavour): self._built(flavour) for flavour in self._mpis}
        elif name == "podman":
            self.clients[name] = self._reach(name)
            self.images |= {(name, flavour): self._brought(flavour) for flavour in self._mpis}
        elif name in RUNTIMES:
            program, package = RUNTIMES[name]
            if executables.find(program) is None:
                raise engine.EngineMissing(
                    f"{program} is not installed", f"apt-get install -y {package}"
                )
            self.images |= {(name, flavour): self._unpacked(flavour) for flavour in self._mpis}
        elif machine := machine_of(name):
            boot.refuse(description.load(machine), self._base)
            for flavour in self._mpis:
                self.images[name, flavour] = self._built(flavour)
                self._boot(machine, flavour, engine=in_docker_there(name))

    def _built(self, flavour: str) -> Image:
        """In Docker, once for all who need it."""
        if flavour not in self._images:
            client = self._reach("docker")
            with self._stages.stage(f"{flavour} image"):
                self._images[flavour] = image.ensure(client, self._base, flavour, self._stages.say)
        return self._images[flavour]

    def _brought(self, flavour: str) -> Image:
        """In Podman: the one in Docker, where that answers, so that both hold the same bits."""
        target, say = self._reach("podman"), self._stages.say
        if "docker" not in self._reached and engine.version() is None:
            with self._stages.stage(f"{flavour} image in podman"):
                return image.ensure(target, self._base, flavour, say)
        found = self._built(flavour)
        with self._stages.stage(f"{flavour} image in podman"):
            podman.bring(self._reach("docker"), target, found, say)
        return found

    def _unpacked(self, flavour: str) -> Image:
        """The image, and the same as a folder."""
        found = self._built(flavour)
        with self._stages.stage(f"{flavour} image unpacked"):
            unpacked.ensure(self._reach("docker"), found, self._stages.say)
        return found

    def _boot(self, machine: str, flavour: str, engine: bool) -> None:
        """For the whole campaign, once for all environments of the machine."""
        if (machine, flavour) not in self.guests:
            with self._stages.stage("guest's disk"):
                made = disk.ensure(self._reach("docker"), self._built(flavour), self._stages.say)
            with self._stages.stage(f"boot of {machine}"):
                booted = boot.booted(description.load(machine), made, self._stages.say)
                self.guests[machine, flavour] = self._stack.enter_context(booted)
        if engine:
            with self._stages.stage(f"docker in {machine}"):
                self.guests[machine, flavour].start_engine()

    def _reach(self, name: str) -> docker.DockerClient:
        if name not in self._reached:
            running = podman.running if name == "podman" else engine.running
            with self._stages.stage(f"{name} engine"):
                self._reached[name] = self._stack.enter_context(running())
        return self._reached[name]

"""What the arms of an experiment run with: MPIs, engines, images, guests; or why not.

Puts together what provision and guests bring; starts no launch.
"""

import contextlib
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import docker

from experiments.cluster import allocation
from experiments.cluster.sites import Site
from experiments.console.stages import Stages
from experiments.emulation import description
from experiments.emulation.hosts import hosts, keepers
from experiments.emulation.hosts.hosts import Hosts
from experiments.guests import boot, disk
from experiments.guests.boot import Guest
from experiments.model.environment import BARE_HOST, DOCKER, PODMAN, EnvironmentId
from experiments.model.experiment import Experiment
from experiments.model.systems.fusion import HOROVOD
from experiments.processes import executables
from experiments.provision import podman
from experiments.provision.engines import engine
from experiments.provision.images import bootstrap, image, unpacked
from experiments.provision.images.image import Image
from experiments.provision.qemu import qemu_binary
from experiments.provision.wheels import horovod_of_ranks, mpi, torch_of_ranks, wheelhouse

NO_SITE = Site()
LACKS = (
    engine.EngineMissing,
    bootstrap.BaseMissing,
    wheelhouse.WheelhouseIncomplete,
    unpacked.UnpackingFailed,
    disk.GuestMissing,
    qemu_binary.QemuMissing,
    keepers.HostsRefused,
)
"""What a machine may lack for a container; an image that does not build is a defect instead."""

RUNTIMES = {
    "userland": ("unshare", "util-linux"),
    "charliecloud": ("ch-run", "charliecloud"),
    "apptainer": ("apptainer", "apptainer"),
}
"""Environments that run an unpacked image without an engine: their program and its package."""


@dataclass(frozen=True)
class Backends:
    """What was made ready.

    Attributes:
        clients: of the engines, by the environments of this machine that they run.
        images: by environment and MPI.
        guests: of emulated machines, by machine and MPI.
        missing: {name of an environment or MPI: why it is left out}.
        hosts: the emulated hosts, which are up until the campaign ends.
    """

    clients: Mapping[EnvironmentId, docker.DockerClient] = field(default_factory=dict)
    images: Mapping[tuple[EnvironmentId, str], Image] = field(default_factory=dict)
    guests: Mapping[tuple[str, str], Guest] = field(default_factory=dict)
    missing: Mapping[str, str] = field(default_factory=dict)
    hosts: Hosts | None = None

    @property
    def engines(self) -> dict[str, docker.DockerClient]:
        """The engines' clients, by the names of the engines."""
        return {each.kind: client for each, client in self.clients.items()}

    def without_missing(self, experiment: Experiment) -> Experiment:
        """The experiment with what is left; the host alone where nothing is."""

        def left(names: tuple[str, ...]) -> tuple[str, ...]:
            return tuple(name for name in names if name not in self.missing)

        asked = experiment.launches
        launches = replace(
            asked,
            environments=tuple(each for each in asked.environments if str(each) not in self.missing)
            or (BARE_HOST,),
            mpis=left(asked.mpis),
            tuned=left(asked.tuned),
        )
        return replace(experiment, launches=launches)


@contextlib.contextmanager
def ready(
    experiment: Experiment,
    base: str,
    optional: bool,
    stages: Stages,
    site: Site = NO_SITE,
    python: str = "",
) -> Iterator[Backends]:
    """Everything that the experiment's arms run with.

    Args:
        base: base image: "auto", "bootstrap" or an image's name.
        optional: leave out an environment or one of several MPIs that cannot be had, instead of
            failing.
        site: the cluster that arms run on, where they do.
        python: folder of an environment that the site provides for arms without a container; ours
            is made for containers alone then.

    Raises:
        ExperimentsError: with what was asked, what was found and what to do next.
    """
    missing: dict[str, str] = {}
    flavours = experiment.launches.mpis
    contained = any(each.is_container for each in experiment.launches.environments)
    makes_own = not experiment.machine and (contained or not python)  # a guest has its image's
    if makes_own:
        for flavour in flavours:
            try:
                mpi.ensure(flavour, stages.say)
            except mpi.MpiMissing as lack:
                if not optional or len(missing) == len(flavours) - 1:
                    raise
                missing[flavour] = f"left out, {lack}"
    with contextlib.ExitStack() as stack:
        present = tuple(flavour for flavour in flavours if flavour not in missing)
        if experiment.uses_torch and makes_own:
            for flavour in present:
                with stages.stage(f"torch for {flavour}"):
                    torch_of_ranks.ensure(flavour, stages.say)
                    if HOROVOD in experiment.factors.transports:
                        horovod_of_ranks.ensure(flavour, stages.say)
        prepared = _Preparation(base, present, stages, stack, experiment.uses_torch, site)
        prepared.missing |= missing
        for environment in experiment.launches.environments:
            try:
                prepared.equip(environment)
            except LACKS as lack:
                if not optional:
                    raise
                prepared.missing[str(environment)] = f"left out, {lack}"
        made = (prepared.clients, prepared.images, prepared.guests, prepared.missing)
        yield Backends(*made, prepared.hosts)


class _Preparation:
    """Makes one environment after the other ready; what was made serves the next, too."""

    def __init__(
        self,
        base: str,
        mpis: tuple[str, ...],
        stages: Stages,
        stack: contextlib.ExitStack,
        torch: bool,
        site: Site,
    ) -> None:
        self._base, self._mpis, self._stages, self._stack = base, mpis, stages, stack
        self._torch, self._site = torch, site
        self._reached: dict[str, docker.DockerClient] = {}
        self._images: dict[str, Image] = {}
        self.clients: dict[EnvironmentId, docker.DockerClient] = {}
        self.images: dict[tuple[EnvironmentId, str], Image] = {}
        self.guests: dict[tuple[str, str], Guest] = {}
        self.missing: dict[str, str] = {}
        self.hosts: Hosts | None = None

    def equip(self, environment: EnvironmentId) -> None:
        """Raises one of LACKS where the environment cannot be had."""
        if environment in (DOCKER, PODMAN):
            self.clients[environment] = self._reach(environment.kind)
            self._keep(environment, self._built if environment == DOCKER else self._brought)
        elif environment.kind in RUNTIMES:
            self._unpack(environment, environment.kind)
        elif environment.on_hosts:
            if environment.container:
                self._unpack(environment, environment.container)
            if self.hosts is None:
                with self._stages.stage(f"{environment.hosts} emulated hosts"):
                    made = hosts.up(environment.hosts, environment.rate)
                    self.hosts = self._stack.enter_context(made)
        elif environment.container:
            self._keep(environment, partial(self._of_site, environment.container))
        elif environment.machine:
            boot.refuse(description.load(environment.machine), self._base)
            for flavour in self._mpis:
                self.images[environment, flavour] = self._built(flavour)
                self._boot(environment.machine, flavour, engine=environment.has_engine)

    def _keep(self, environment: EnvironmentId, image_of: Callable[[str], Image]) -> None:
        self.images |= {(environment, flavour): image_of(flavour) for flavour in self._mpis}

    def _unpack(self, environment: EnvironmentId, runtime: str) -> None:
        """The image as a folder, for a runtime that is there."""
        program, package = RUNTIMES[runtime]
        if executables.find(program) is None:
            raise engine.EngineMissing(
                f"{program} is not installed", f"apt-get install -y {package}"
            )
        self._keep(environment, self._unpacked)

    def _built(self, flavour: str) -> Image:
        """In Docker, made once."""
        if flavour not in self._images:
            client = self._reach("docker")
            with self._stages.stage(f"{flavour} image"):
                self._images[flavour] = self._ensure(client, flavour)
        return self._images[flavour]

    def _ensure(self, client: docker.DockerClient, flavour: str) -> Image:
        return image.ensure(client, self._base, flavour, self._stages.say, self._torch)

    def _brought(self, flavour: str) -> Image:
        """In Podman: the one in Docker, where that answers, so that both hold the same bits."""
        target = self._reach("podman")
        if "docker" not in self._reached and engine.version() is None:
            with self._stages.stage(f"{flavour} image in podman"):
                return self._ensure(target, flavour)
        found = self._built(flavour)
        with self._stages.stage(f"{flavour} image in podman"):
            podman.bring(self._reach("docker"), target, found, self._stages.say)
        return found

    def _unpacked(self, flavour: str) -> Image:
        """The image, and the same as a folder."""
        found = self._built(flavour)
        with self._stages.stage(f"{flavour} image unpacked"):
            unpacked.ensure(self._reach("docker"), found, self._stages.say)
        return found

    def _of_site(self, container: str, flavour: str) -> Image:
        """What a container of a cluster runs; nodes of an allocation find it as it was made."""
        if path := self._site.image_of(container, flavour):
            return Image(str(path), str(path), "", "", flavour, "", False)
        if allocation.held(os.environ):
            return unpacked.recall(image.variant(flavour, self._torch))
        return self._unpacked(flavour)

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

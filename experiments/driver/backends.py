"""What the arms of an experiment run with: MPIs, engines, images, guests; or why not.

Puts together what provision and guests bring; starts no launch.
"""

import contextlib
import os
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Any

import docker

import hbmcomm
from experiments.cluster import jobs, sites
from experiments.console import Stages
from experiments.driver.campaign_file import Request
from experiments.emulation import boot, description, emulated_hosts, guest_disk, keepers
from experiments.emulation.boot import Guest
from experiments.emulation.emulated_hosts import Hosts
from experiments.environments import runtime
from experiments.model.environment import BARE_HOST, EnvironmentId
from experiments.model.errors import ExperimentsError, Missing
from experiments.model.experiment import Experiment, Launches
from experiments.model.launch import EXTERNAL_MPI
from experiments.model.mpi_settings import HBW_POLICY, HBW_POLICY_MPI
from experiments.provision import (
    engine,
    image,
    image_files,
    layers,
    mpi_wheels,
    podman,
    reference_files,
    system,
)
from experiments.provision.image import Image
from experiments.provision.layers import Layers


@dataclass
class Backends:
    """What was made ready.

    Attributes:
        clients: of the engines, by the environments of this machine that they run.
        images: by environment and MPI.
        guests: of emulated machines, by machine and MPI.
        layers: of the images, by MPI: arms over an image's files without an engine run from them.
        files: {MPI: what ranks on the host map code from}; each launch of the reference has copies.
        own_files: {MPI: why the reference runs from the files themselves}.
        copied: {MPI: why its image is unpacked for these arms, and not mounted}.
        missing: {name of an environment, an MPI or HBW_POLICY: why it is left out}.
        hosts: the emulated hosts, which are up until the campaign ends.
    """

    clients: dict[EnvironmentId, docker.DockerClient] = field(default_factory=dict)
    images: dict[tuple[EnvironmentId, str], Image] = field(default_factory=dict)
    guests: dict[tuple[str, str], Guest] = field(default_factory=dict)
    files: dict[str, tuple[Path, ...]] = field(default_factory=dict)
    own_files: dict[str, str] = field(default_factory=dict)
    layers: dict[str, Layers] = field(default_factory=dict)
    copied: dict[str, str] = field(default_factory=dict)
    missing: dict[str, str] = field(default_factory=dict)
    hosts: Hosts | None = None

    @property
    def engines(self) -> dict[str, docker.DockerClient]:
        """The engines' clients, by the names of the engines."""
        return {environment.kind: client for environment, client in self.clients.items()}

    def without_missing(self, experiment: Experiment) -> Experiment:
        """The experiment with what is left; the host alone where nothing is."""

        def left(names: tuple[Any, ...]) -> tuple[Any, ...]:
            return tuple(name for name in names if str(name) not in self.missing)

        asked = experiment.launches
        launches = replace(
            asked,
            environments=left(asked.environments) or (BARE_HOST,),
            mpis=left(asked.mpis),
            tuned=left(asked.tuned),
            hbw_policies=() if HBW_POLICY in self.missing else asked.hbw_policies,
            external=tuple(
                name for name in asked.external if EXTERNAL_MPI.get(name) not in self.missing
            ),
        )
        return replace(experiment, launches=launches)


@contextlib.contextmanager
def ready(experiment: Experiment, request: Request, stages: Stages) -> Iterator[Backends]:
    """Everything that the experiment's arms run with.

    Where a site provides an environment for arms without a container, ours is made for containers
    alone.
    """
    backends, flavours = Backends(), experiment.launches.mpis
    contained = any(environment.is_container for environment in experiment.launches.environments)
    makes_own = not experiment.machine and (contained or not request.python)  # a guest: its image's
    if makes_own:
        for flavour in flavours:
            try:
                mpi_wheels.ensure(flavour, stages.say)
            except Missing as lack:
                if not request.optional or len(backends.missing) == len(flavours) - 1:
                    raise
                backends.missing[flavour] = f"left out, {lack}"
    present = tuple(flavour for flavour in flavours if flavour not in backends.missing)
    if experiment.uses_torch and makes_own:
        for flavour in present:
            with stages.stage(f"torch for {flavour}"):
                mpi_wheels.add_torch(flavour, stages.say)
    if experiment.launches.aa_pair and BARE_HOST in experiment.launches.environments:
        for flavour in present:
            _find_files(backends, flavour, request, stages)
    with contextlib.ExitStack() as stack:
        preparation = _Preparation(
            *(backends, request, experiment.launches, present, experiment.uses_torch, stages, stack)
        )
        for environment in experiment.launches.environments:
            try:
                preparation.equip(environment)
            except Missing as lack:
                if not request.optional:
                    raise
                backends.missing[str(environment)] = f"left out, {lack}"
        if reason := _no_hbm_for_policies(experiment):
            backends.missing[HBW_POLICY] = f"left out, {reason}"
        yield backends


def _no_hbm_for_policies(experiment: Experiment) -> str:
    """Why Intel MPI's policies of memory cannot be arms here; "" where they can, or none is asked.

    Intel MPI looks for HBM itself and ignores the variable without it. It does not read memkind's
    variable that emulates HBM.
    """
    asked = experiment.launches
    on_host = HBW_POLICY_MPI in asked.mpis and BARE_HOST in asked.environments
    if not (asked.hbw_policies and on_host):
        return ""
    hbm = hbmcomm.topology().hbm
    return "" if hbm.nodes and not hbm.emulated else f"Intel MPI ignores it without HBM: {hbm.rule}"


def _find_files(backends: Backends, flavour: str, request: Request, stages: Stages) -> None:
    """What the reference maps code from, which each of its launches gets fresh copies of."""
    if request.python:
        backends.own_files[flavour] = "a site provides them"
        return
    try:
        with stages.stage(f"{flavour} files of the reference"):
            backends.files[flavour] = reference_files.mapped(
                flavour, mpi_wheels.prefix(flavour), request.out
            )
    except reference_files.NotCopied as reason:
        backends.own_files[flavour] = str(reason)


def lacking(experiment: Experiment, base: str) -> dict[str, str]:
    """{name of an environment: what it needs and this machine lacks}; starts and makes nothing."""
    reasons = {}
    for environment in experiment.launches.environments:
        try:
            _refuse(environment, base)
            if environment.kind == podman.NAME:
                asked = experiment.launches
                podman.refuse(podman.is_rootless(), asked.profiles, asked.layouts)
        except ExperimentsError as lack:
            reasons[str(environment)] = str(lack)
    if reason := _no_hbm_for_policies(experiment):
        reasons[HBW_POLICY] = reason
    return reasons


def _refuse(environment: EnvironmentId, base: str) -> None:
    """Raise where an environment cannot be had, as far as that is seen without a start."""
    _refuse_runtime(environment)
    if environment.on_hosts:
        keepers.refuse()
    if environment.machine:
        boot.refuse(description.load(environment.machine), base)
    without_docker = environment.on_cluster or environment.runtime == podman.NAME
    if environment.is_container and not without_docker and (hindrance := engine.hindrance()):
        raise hindrance


def _refuse_runtime(environment: EnvironmentId) -> None:
    if hindrance := system.hindrance(runtime.of(environment)):
        raise hindrance


@dataclass
class _Preparation:
    """Makes one environment after the other ready; what was made serves the next, too."""

    found: Backends
    request: Request
    launches: Launches
    mpis: tuple[str, ...]
    torch: bool
    stages: Stages
    stack: contextlib.ExitStack
    reached: dict[str, docker.DockerClient] = field(default_factory=dict)
    images: dict[str, Image] = field(default_factory=dict)

    def equip(self, environment: EnvironmentId) -> None:
        """Raises Missing where the environment cannot be had."""
        if environment.has_engine and not environment.place:
            self.found.clients[environment] = client = self._reach(environment.kind)
            brought = environment.kind == podman.NAME
            if brought:
                asked = self.launches
                podman.refuse(podman.is_rootless(client), asked.profiles, asked.layouts)
            self._keep(environment, self._brought if brought else self._built)
        elif runtime.tree_of(environment):
            _refuse_runtime(environment)
            self._keep(environment, self._mounted)
        elif environment.on_hosts:
            if environment.container:
                _refuse_runtime(environment)
                self._keep(environment, self._unpacked)
            if self.found.hosts is None:
                with self.stages.stage(f"{environment.hosts} emulated hosts"):
                    made = emulated_hosts.up(environment.hosts, environment.rate)
                    self.found.hosts = self.stack.enter_context(made)
        elif environment.container:
            self._keep(environment, partial(self._of_site, environment.container))
        elif environment.machine:
            boot.refuse(description.load(environment.machine), self.request.base)
            self._keep(environment, self._built)
            for flavour in self.mpis:
                self._boot(environment.machine, flavour, engine=environment.has_engine)

    def _keep(self, environment: EnvironmentId, image_of: Callable[[str], Image]) -> None:
        self.found.images |= {(environment, flavour): image_of(flavour) for flavour in self.mpis}

    def _built(self, flavour: str) -> Image:
        """In Docker, made once."""
        if flavour not in self.images:
            client = self._reach("docker")
            with self.stages.stage(f"{flavour} image"):
                self.images[flavour] = self._ensure(client, flavour)
        return self.images[flavour]

    def _ensure(self, client: docker.DockerClient, flavour: str) -> Image:
        return image.ensure(client, self.request.base, flavour, self.stages.say, self.torch)

    def _brought(self, flavour: str) -> Image:
        """In Podman: the one in Docker, where that answers, so that both hold the same bits."""
        target = self._reach(podman.NAME)
        if "docker" not in self.reached and engine.version() is None:
            with self.stages.stage(f"{flavour} image in podman"):
                return self._ensure(target, flavour)
        built = self._built(flavour)
        with self.stages.stage(f"{flavour} image in podman"):
            podman.bring(self._reach("docker"), target, built, self.stages.say)
        return built

    def _mounted(self, flavour: str) -> Image:
        """The image, and its layers; or the same as a folder, where they cannot be had."""
        built = self._built(flavour)
        if flavour not in self.found.layers | self.found.copied:
            try:
                self.found.layers[flavour] = layers.of(self._reach("docker"), built)
            except layers.Unshared as reason:
                self.found.copied[flavour] = str(reason)
        return self._unpacked(flavour) if flavour in self.found.copied else built

    def _unpacked(self, flavour: str) -> Image:
        """The image, and the same as a folder."""
        built = self._built(flavour)
        with self.stages.stage(f"{flavour} image unpacked"):
            image_files.ensure(self._reach("docker"), built, self.stages.say)
        return built

    def _of_site(self, container: str, flavour: str) -> Image:
        """What a container of a cluster runs; nodes of an allocation find it as it was made."""
        site = sites.load(self.request.site, sites.path())[1]
        if path := site.image_of(container, flavour):
            return Image(str(path), str(path), "", "", flavour, "", False)
        if jobs.held(os.environ):
            return image_files.recall(image.variant(flavour, self.torch))
        return self._unpacked(flavour)

    def _boot(self, machine: str, flavour: str, engine: bool) -> None:
        """For the whole campaign, once for all environments of the machine."""
        guests = self.found.guests
        if (machine, flavour) not in guests:
            with self.stages.stage("guest's disk"):
                made = guest_disk.ensure(
                    self._reach("docker"), self._built(flavour), self.stages.say
                )
            with self.stages.stage(f"boot of {machine}"):
                booted = boot.booted(description.load(machine), made, self.stages.say)
                guests[machine, flavour] = self.stack.enter_context(booted)
        if engine:
            with self.stages.stage(f"docker in {machine}"):
                guests[machine, flavour].start_engine()

    def _reach(self, name: str) -> docker.DockerClient:
        if name not in self.reached:
            running = podman.running if name == podman.NAME else engine.running
            with self.stages.stage(f"{name} engine"):
                self.reached[name] = self.stack.enter_context(running())
        return self.reached[name]

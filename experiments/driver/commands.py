"""The command of each launch of a campaign: its environment, and the variables of its ranks."""

import os
from collections.abc import Mapping
from dataclasses import replace
from functools import cached_property
from pathlib import Path

from experiments.baselines import launches
from experiments.cluster import sites
from experiments.cluster.sites import Site
from experiments.driver.backends import Backends
from experiments.driver.campaign_file import Campaign
from experiments.emulation import description
from experiments.emulation.emulated_hosts import hosts_to_be
from experiments.emulation.host_plan import Plan
from experiments.environments import runtime
from experiments.environments.docker import Docker
from experiments.environments.host import Host, over_copies
from experiments.environments.hosts import OnHosts
from experiments.environments.mpiexec import asking
from experiments.environments.process import Command, Process
from experiments.environments.profiles import Machine
from experiments.environments.runtime import Contained, Tree
from experiments.environments.slurm import Slurm
from experiments.environments.vm import Vm
from experiments.model.arms import is_reference
from experiments.model.environment import BARE_HOST, EnvironmentId
from experiments.model.launch import Launch
from experiments.programs import imb
from experiments.provision import (
    engine,
    image,
    image_files,
    layers,
    mpi_wheels,
    passthrough,
    podman,
    reference_files,
    site_python,
)

Variables = Mapping[str, str]
OURS = ("PATH", "LD_LIBRARY_PATH")
"""Variables that would lead ranks of a site's MPI to an MPI from a wheel."""


class Commands:
    """The commands of a campaign's launches; images by their names where none is ready."""

    def __init__(self, campaign: Campaign, backends: Backends) -> None:
        self._campaign, self._found = campaign, backends
        self._torch = campaign.experiment.uses_torch
        self._cores = passthrough.cores()

    def __call__(self, launch: Launch, folder: Path) -> Command:
        """The command that runs a launch over its folder, which holds launch.json."""
        prefix, where = self._prefix(launch.mpi), launch.environment
        if launch.program == imb.NAME:
            prefix, own = mpi_wheels.prefix(imb.FLAVOUR), (imb.RUN, str(self._cores))
            host = Host(prefix, self._cores, self._campaign.variables, own)
            return host.command(launch, folder)
        variables = {**self._campaign.variables, **asking(launch.mpi)}
        if launch.program in launches.COUNTERPARTS:
            host = Host(prefix, self._cores, variables, (launches.RUN,))
            return host.command(launch, folder)
        if where == BARE_HOST:
            host = Host(prefix, self._cores, variables)
            made = self._reference(host.command(launch, folder), launch, folder)
            return self._of_site(made, prefix)
        if self._torch and (where.is_container or where.is_emulated):
            variables |= image.TORCH_VARIABLES  # only an engine gives ranks those of the image
        if where.on_cluster:
            return self._on_nodes(launch, folder, variables)
        if where.on_hosts:
            return self._on_hosts(where, launch.mpi, variables).command(launch, folder)
        if where.is_emulated:
            return self._in_guest(where, launch.mpi, variables).command(launch, folder)
        if tree := runtime.tree_of(where):
            return self._over(tree, launch.mpi, variables).command(launch, folder)
        return self._in_engine(where, launch.mpi, variables).command(launch, folder)

    def _reference(self, made: Process, launch: Launch, folder: Path) -> Process:
        """Over fresh copies of its files, where each launch of the reference has some."""
        if not self._found.files.get(launch.mpi) or not is_reference(launch):
            return made
        return over_copies(made, folder / reference_files.FOLDER / reference_files.LIST)

    def _over(self, made: type[Tree], flavour: str, variables: Variables) -> Tree:
        """The image without an engine: its layers, or a copy where they cannot be had."""
        tree, mounted = image_files.folder(image.variant(flavour, self._torch)), None
        if shared := self._found.layers.get(flavour):
            tree, mounted = layers.mount_point(), (str(shared.folder), shared.option)
        passed = (image.PREFIX, self._cores, self._machine, variables, os.getuid() == 0, mounted)
        return made(tree, *passed)

    def _prefix(self, flavour: str, contained: Contained | None = None) -> Path:
        """Prefix of the launcher; ranks without a container have the site's, where there is one."""
        own = self._campaign.request.python
        return Path(own) if own and not contained else mpi_wheels.prefix(flavour)

    def _of_site(self, made: Process, prefix: Path) -> Process:
        """As it is, or with the MPI that the site provides: its mpiexec, found as its modules want.

        Args:
            prefix: the environment that the command starts ranks of.
        """
        if not self._campaign.request.python:
            return made
        replaced, mpiexec = str(prefix / "bin/mpiexec"), str(site_python.mpiexec(prefix))
        argv = tuple(mpiexec if word == replaced else word for word in made.argv)
        kept = {name: value for name, value in made.environment.items() if name not in OURS}
        return replace(made, argv=argv, environment=kept | site_python.variables())

    @cached_property
    def _site(self) -> Site:
        return sites.load(self._campaign.request.site, sites.path())[1]

    @cached_property
    def _machine(self) -> Machine:
        return passthrough.machine()

    @cached_property
    def _versions(self) -> dict[EnvironmentId, str]:
        return {where: engine.version_of(client) for where, client in self._found.clients.items()}

    def _rootless(self, where: EnvironmentId) -> bool:
        """Whether its engine is an ordinary user's; without one yet, whether it would be."""
        client = self._found.clients.get(where)
        return where.kind == podman.NAME and podman.is_rootless(client)

    def _tag(self, flavour: str) -> str:
        return image.tag(image.variant(flavour, self._torch))

    def _on_hosts(self, where: EnvironmentId, flavour: str, variables: Variables) -> OnHosts:
        """Emulated hosts, one set for all launches."""
        hosts = self._found.hosts
        ways = hosts.ways if hosts else hosts_to_be(Plan(where.hosts, where.rate))
        contained = self._contained(where, flavour, None)
        if contained and runtime.changes_user(where) and os.getuid() == 0:
            contained = replace(contained, user=(self._machine.uid, self._machine.gid))
        prefix = self._prefix(flavour, contained)
        return OnHosts(prefix, self._cores, ways, contained, variables)

    def _contained(
        self, where: EnvironmentId, flavour: str, provided: Path | None
    ) -> Contained | None:
        """The container of ranks on several hosts, with the image that a site provides or ours."""
        tree = provided or image_files.folder(image.variant(flavour, self._torch))
        contained = runtime.of(where).contained
        return contained(tree, image.PREFIX) if contained else None

    def _on_nodes(self, launch: Launch, folder: Path, variables: Variables) -> Process:
        """On the nodes of an allocation, all alike."""
        site, asked = self._site, self._campaign.experiment.launches
        where, flavour = launch.environment, launch.mpi
        contained = self._contained(where, flavour, site.image_of(where.container, flavour))
        prefix = self._prefix(flavour, contained)
        made = Slurm(
            prefix,
            asked.nodes,
            self._cores,
            asked.launcher,
            site.pmi_of(flavour),
            contained,
            {**variables, **site.variables},
        ).command(launch, folder)
        return made if contained else self._of_site(made, prefix)

    def _in_engine(self, where: EnvironmentId, flavour: str, variables: Variables) -> Docker:
        ready = self._found.images.get((where, flavour))
        return Docker(
            ready.id if ready else self._tag(flavour),
            image.PREFIX,
            self._cores,
            self._machine,
            self._campaign.label,
            variables,
            engine=where.kind,
            version=self._versions.get(where, ""),
            host_prefix=mpi_wheels.prefix(flavour),
            rootless=self._rootless(where),
        )

    def _in_guest(self, where: EnvironmentId, flavour: str, variables: Variables) -> Vm:
        """An emulated machine without or with Docker there; its guest has the image's files."""
        described = description.load(where.machine)
        guest = self._found.guests.get((where.machine, flavour))
        agent = guest.socket if guest else Path(f"{where.machine}.agent")
        if not where.has_engine:
            own = {**variables, "HOME": "/tmp"}
            return Vm(Host(image.PREFIX, described.cpus, own), agent)
        passed = description.emulated(described)
        name, cpus = self._tag(flavour), described.cpus
        there = Docker(name, image.PREFIX, cpus, passed, self._campaign.label, variables)
        return Vm(there, agent)

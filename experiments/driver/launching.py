"""What launches of a campaign have in common, what a launch's folder holds before it starts, and
what is checked before its result is taken in; a launch without company, from its start to its end.
"""

import os
import re
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import docker

from experiments.analysis import metadata_diff, mpi_transport_log
from experiments.environments import profiles, runtime
from experiments.environments.process import Command
from experiments.jobs.execute import MachineGone, execute
from experiments.jobs.failures import RESUME, LaunchFailed, failed
from experiments.model.arms import is_reference
from experiments.model.environment import EnvironmentId
from experiments.model.launch import Cell, Launch
from experiments.processes import files as logs
from experiments.provision import reference_files
from experiments.results import store
from experiments.results.result import Result

STALLED = 180.0  # seconds without one more cell after which a launch is taken to hang
STALLED_THERE = 600.0  # in an emulated machine, where a rank alone may take 10 s to start


@dataclass(frozen=True)
class LaunchContext:
    """What launches of a campaign have in common.

    Attributes:
        folder: a results folder that store.create has begun.
        command: of a launch over its own folder, which holds launch.json.
        owner: uid and gid that container ranks write as, outside of user namespaces.
        clients: engines' clients, for environments that answer with a container.
        gone: by environment, a function: why a machine is gone that its launches run on, "" while
            all are there; given the seconds for which a launch has not got on.
        files: by MPI, what each launch of the reference gets fresh copies of.
        groups: the operations that an interval has, by ranks, operation and bytes. Later blocks
            take as many: sides of a pair with other groups give no ratio.
        first: by MPI and program, a finished launch that others must hold the same code as.
        lent: the first uid and gid of user namespaces, which are added to `owner` there.
    """

    folder: Path
    command: Callable[[Launch, Path], Command]
    owner: tuple[int, int]
    clients: Mapping[EnvironmentId, docker.DockerClient] = field(default_factory=dict)
    gone: Mapping[EnvironmentId, Callable[[float], str]] = field(default_factory=dict)
    files: Mapping[str, Sequence[Path]] = field(default_factory=dict)
    groups: dict[tuple[int, str, int], int] = field(default_factory=dict)
    first: dict[tuple[str, str], Result] = field(default_factory=dict)
    lent: tuple[int, int] = (0, 0)

    def group(self, ranks: int, cell: Cell, needed: int) -> int:
        """As many operations as intervals of this cell have, in all blocks from now on.

        As many as in the blocks before, also of a campaign that goes on. They are twice as many as
        the clock needs, so that they stay enough where the machine becomes up to twice as fast;
        beyond that there are more.
        """
        if not self.groups:
            for name in sorted(store.finished(self.folder)):
                result = store.read_result(self.folder, name)
                for of_cell in result.measured if result.company else ():
                    group = result.launch.ranks, of_cell.operation, of_cell.bytes
                    self.groups[group] = of_cell.group
        key = (ranks, cell.operation, cell.bytes)
        if needed > 2 * self.groups.get(key, 0):
            self.groups[key] = needed
        return self.groups[key]

    def prepare(self, launch: Launch, place: Path) -> Command:
        """Write launch.json into a launch's folder; the command that runs there."""
        store.write_json(place / "launch.json", launch.to_dict())
        if runtime.changes_user(launch.environment) and os.getuid() == 0:
            owner = profiles.owner(launch.profile, self.owner, self.lent)
            for path in (*place.iterdir(), place):  # the folder last: then others may change it
                os.chown(path, *owner, follow_symlinks=False)
        if is_reference(launch) and (files := self.files.get(launch.mpi)):
            reference_files.copied(files, place / reference_files.FOLDER)
        return self.command(launch, place.absolute())

    def check_presence(self, launch: Launch, idle: float) -> None:
        """See that the machines are there that a launch runs on.

        Args:
            idle: seconds for which it has not got on.

        Raises:
            MachineGone: one is not.
        """
        ask = self.gone.get(launch.environment)
        if ask and (why := ask(idle)):
            raise self.machine_gone(launch, why)

    def take_in(
        self,
        launch: Launch,
        place: Path,
        command: Command,
        company: Sequence[str] = (),
    ) -> None:
        """Keep what a launch wrote, with its command and what its MPI chose by its log.

        Args:
            company: the names of all launches that took turns with it to the end.

        Raises:
            ResultsError: it wrote nothing, something torn, or holds other code than a finished
                launch of the same MPI and program.
        """

        def more(values: Mapping[str, Any]) -> dict[str, Any]:
            self._refuse_other_code(launch, values["environment"])
            log = logs.text(log_of(self.folder, launch.name))
            environment = mpi_transport_log.added(values["environment"], log)
            added = {"environment": environment, "command": command.shell()}
            return added | ({"company": list(company)} if len(company) > 1 else {})

        store.accept(self.folder, launch.name, place, more)

    def _refuse_other_code(self, launch: Launch, recorded: Mapping[str, Any]) -> None:
        """A launch must hold what the first finished one of the same MPI and program holds."""
        key = launch.mpi, launch.program
        if key not in self.first:
            for name in sorted(store.finished(self.folder)):
                result = store.read_result(self.folder, name)
                self.first.setdefault((result.launch.mpi, result.launch.program), result)
                if key in self.first:
                    break
        first = self.first.get(key)
        if first and (refused := metadata_diff.refusals(first.facts.recorded, recorded)):
            pairs = (f"{key}: {one} against {two}" for key, (one, two) in refused.items())
            raise store.ResultsError(
                f"launches {first.name} and {launch.name} do not hold the same code "
                f"({'; '.join(pairs)}) and cannot be compared; measure again into another --out"
            )

    def machine_gone(self, launch: Launch, why: str) -> MachineGone:
        """The error for a launch of which a machine is gone."""
        return MachineGone(
            f"launch {launch.name} ran on a machine that is gone: {why}\n"
            f"Finished launches are kept: {RESUME}"
        )


def run_alone(context: LaunchContext, launch: Launch, within: Callable[[float], None]) -> None:
    """Run a launch without company, and take in what it found.

    Args:
        within: called with the share of the launch that is done, 0 to 1.

    Raises:
        LaunchFailed: it ended badly, or stood still and was ended.
        MachineGone: the machine that it runs on is gone.
        ResultsError: as LaunchContext.take_in().
    """
    name, log = launch.name, log_of(context.folder, launch.name)
    patience = STALLED_THERE if launch.environment.is_emulated else STALLED
    with store.incoming(context.folder, name) as place:
        seen, moved = "", time.monotonic()

        def tick() -> None:
            nonlocal seen, moved
            text = logs.small_text(place / "progress")
            if text != seen:
                seen, moved = text, time.monotonic()
                within(_share(text))
            idle = time.monotonic() - moved
            context.check_presence(launch, idle)
            if idle > patience:
                why = f"stood still for {patience:.0f} s"
                kept = f"finished launches are kept: {RESUME}"
                raise LaunchFailed(f"launch {name} {why} and was ended; {kept}", why)

        command = context.prepare(launch, place)
        code = execute(command, log, context.clients.get(launch.environment), tick)
        if code:
            raise failed(name, code, log)
        context.take_in(launch, place, command)


def _share(progress: str) -> float:
    """The share of a launch that is done, 0 to 1; 0 where its ranks say something else."""
    counts = re.match(r"(\d{1,9}) ([1-9]\d{0,8})\b", progress)
    return min(1.0, int(counts[1]) / int(counts[2])) if counts else 0.0


def log_of(folder: Path, name: str) -> Path:
    """The file that a launch's output goes to; its folder is there."""
    log = folder / "logs" / f"{name}.log"
    log.parent.mkdir(exist_ok=True)
    return log

"""Runs a campaign: the only place where launches are started, one after the other.

Everything it starts is given to it as commands; what a launch found is taken in by results.py.
"""

import contextlib
import json
import os
import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Protocol

import docker

from experiments import chosen, confounders, results
from experiments.containers import ContainerRefused
from experiments.environments.command import Command
from experiments.errors import ExperimentsError
from experiments.execute import execute
from experiments.progress import Display
from experiments.schedule import Block, Launch, labels
from experiments.spec import machine_of

STALLED = 180.0  # seconds without one more cell after which a launch is taken to hang
STALLED_THERE = 600.0  # in an emulated machine, where a rank alone may take 10 s to start
GONE_PATIENCE = 2.0  # seconds in which a machine whose agent has fallen silent is seen to be gone
DISK_FULL = 2**20  # bytes free below which a failed launch is laid to the disk
POLL = 0.1  # seconds
RESUME = "--resume goes on from here"
TOLD_LINES = 12  # of a failed launch's log that the error message repeats
FOREIGN = ("docker", "podman", "apptainer")  # whose ranks are another user where the driver is root
FAILURES = 2  # of a container arm, after which its other launches are not tried any more


class LaunchFailed(ExperimentsError):
    """A launch did not end well; what finished before it is kept.

    Attributes:
        why: in a few words: "exit code 139", "stood still for 180 s".
        left: the texts of the files that attended() was to keep, by their names.
    """

    def __init__(self, text: str, why: str = "") -> None:
        super().__init__(text)
        self.why = why
        self.left: dict[str, str] = {}


class Environment(Protocol):
    """Anything that turns a launch into a command."""

    def command(self, launch: Launch, folder: Path) -> Command:
        """The command that runs the harness over a folder holding launch.json."""


class MachineGone(ExperimentsError):
    """An emulated machine ended while launches ran in it."""


Environments = Callable[[Launch], Environment]
"""Which environment a launch runs in."""

Gone = Mapping[str, Callable[[], str]]
"""By environment, what tells why its emulated machine is gone: "" while it runs."""


def run(
    folder: Path,
    blocks: Sequence[Block],
    environments: Environments,
    clients: Mapping[str, docker.DockerClient],
    owner: tuple[int, int],
    gone: Gone | None = None,
) -> list[str]:
    """Run every launch that is not finished yet.

    A container's launch that fails is a finding: it is kept as such and the campaign goes on, but
    for the other launches of an arm that failed FAILURES times.

    Args:
        folder: a results folder that results.create has begun.
        clients: of the engines for those that answer with a container, by environment.
        owner: uid and gid that container ranks write as.

    Returns:
        What failed, one message each; `--resume` tries it again.

    Raises:
        LaunchFailed: outside containers; EngineLost, MachineGone: finished launches stay,
            `--resume` completes.
        ResultsError: when a launch's result does not fit those before it.
    """
    finished = results.finished(folder)
    launches = [launch for block in blocks for launch in block.launches]
    waiting = [launch for launch in launches if launch.name not in finished]
    failed: dict[tuple[str, str, int], list[str]] = {}
    shown = labels(launches)
    with Display(len(launches), len(launches) - len(waiting)) as display:
        for launch in waiting:
            failures = failed.setdefault((launch.arm, launch.mpi, launch.ranks), [])
            if len(failures) >= FAILURES:
                continue
            display.begin(shown[launch.name])
            client = clients.get(launch.environment)
            there = _presence(gone or {}, launch)
            try:
                _launch(folder, launch, environments(launch), client, owner, display.within, there)
            except (LaunchFailed, ContainerRefused) as failure:
                if machine_of(launch.environment):
                    _await_end(there)
                if not launch.layout:  # no container
                    raise
                results.fail(folder, launch.name, launch.to_dict(), str(failure))
                failures.append(str(failure))
            display.end()
    return [told for failures in failed.values() for told in failures]


def _presence(gone: Gone, launch: Launch) -> Callable[[], None]:
    """What raises MachineGone once the emulated machine of a launch is gone."""
    ask = gone.get(launch.environment, lambda: "")

    def look() -> None:
        if why := ask():
            raise MachineGone(
                f"the guest of {machine_of(launch.environment)} ended while {launch.name} ran in "
                f"it: {why}\nFinished launches are kept: --resume boots it again and goes on"
            )

    return look


def _await_end(look: Callable[[], None]) -> None:
    """A launch may end before the machine that it fails with is seen to be gone."""
    deadline = time.monotonic() + GONE_PATIENCE
    while time.monotonic() < deadline:
        look()
        time.sleep(POLL)


def _launch(
    folder: Path,
    launch: Launch,
    environment: Environment,
    client: "docker.DockerClient | None",
    owner: tuple[int, int],
    within: Callable[[float], None],
    there: Callable[[], None],
) -> None:
    lines: list[str] = []

    def prepare(place: Path) -> Command:
        results.write_json(place / "launch.json", launch.to_dict())
        if launch.environment in FOREIGN:
            _give(place, owner)
        command = environment.command(launch, place.absolute())
        lines.append(command.shell())
        return command

    patience = STALLED_THERE if machine_of(launch.environment) else STALLED
    told = (within, RESUME, patience, there)
    with attended(folder, launch.name, prepare, client, *told) as place:
        _refuse_other_code(folder, launch.name, place)
        results.add(place, {"command": lines[0]})


@contextlib.contextmanager
def attended(
    folder: Path,
    name: str,
    prepare: Callable[[Path], Command],
    client: "docker.DockerClient | None",
    within: Callable[[float], None],
    advice: str,
    patience: float = STALLED,
    there: Callable[[], None] = lambda: None,
    keep: Sequence[str] = (),
) -> Iterator[Path]:
    """One launch, from an empty folder to a finished launch of a results folder.

    The block looks at what the launch wrote, before that is taken in.

    Args:
        folder: the results folder.
        prepare: fills the launch's own folder; answers with the command that runs there.
        within: told how much of the launch is done, 0 to 1.
        advice: what to do when it fails, as an error message ends.
        patience: seconds in which it gets on, or is ended.
        there: raises once what it runs in is gone.
        keep: names of text files in the launch's folder that LaunchFailed.left is to hold.

    Raises:
        LaunchFailed: it ended badly, or stood still and was ended.
        ResultsError: it wrote nothing, or something torn.
    """
    with results.incoming(folder, name) as place:
        log = folder / "logs" / f"{name}.log"
        log.parent.mkdir(exist_ok=True)
        watch = _Watch(place / "progress", name, within, advice, patience)

        def tick() -> None:
            there()
            watch.look()

        try:
            code = execute(prepare(place), log, client, tick)
            if code:
                raise LaunchFailed(_explain(name, code, log, advice), f"exit code {code}")
        except LaunchFailed as failure:
            failure.left = {each: _text(place / each) for each in keep}
            raise
        _add_chosen(place, log)
        yield place
        results.accept(folder, name, place)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8", errors="replace") if path.is_file() else ""


def _add_chosen(place: Path, log: Path) -> None:
    """Which ways the MPI says that its messages took, beside what its ranks tried."""
    result = place / "result.json"
    if result.exists():  # accept() refuses a launch without
        environment = results.read_json(result).get("environment", {})
        results.add(place, {"environment": chosen.added(environment, _text(log))})


def _give(place: Path, owner: tuple[int, int]) -> None:
    """Let the container's user write here; root alone can and need give."""
    if os.getuid() == 0:
        for path in (place, place / "launch.json"):
            os.chown(path, *owner)


def disk_full(folder: Path) -> bool:
    """Whether a failure in that folder is laid to the disk."""
    return shutil.disk_usage(folder).free < DISK_FULL


class _Watch:
    """Looks at a launch's progress file; a launch that stands still is ended."""

    def __init__(
        self,
        progress: Path,
        name: str,
        within: Callable[[float], None],
        advice: str,
        patience: float,
    ) -> None:
        self._progress, self._name, self._within, self._advice = progress, name, within, advice
        self._patience = patience
        self._told, self._moved = "", time.monotonic()

    def look(self) -> None:
        told = self._progress.read_text() if self._progress.exists() else ""
        now = time.monotonic()
        if told != self._told:
            self._told, self._moved = told, now
            done, total, *_ = [*told.split(), "0", "0"]
            if int(total):
                self._within(int(done) / int(total))
        elif now - self._moved > self._patience:
            why = f"stood still for {self._patience:.0f} s"
            raise LaunchFailed(
                f"launch {self._name} {why} and was ended; finished launches are kept: "
                f"{self._advice}",
                why,
            )


def _explain(name: str, code: int, log: Path, advice: str) -> str:
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines()
    told = "\n".join(f"  {line}" for line in lines[-TOLD_LINES:])
    reason = " (137: ended by SIGKILL, as when memory runs out)" if code in (137, -9) else ""
    if disk_full(log.parent):
        reason = f": No space left on device ({log.parent})"
    return (
        f"launch {name} failed with exit code {code}{reason}; its last lines:\n{told}\n"
        f"The whole log is {log}. Finished launches are kept: {advice}."
    )


def _refuse_other_code(folder: Path, name: str, place: Path) -> None:
    """Every launch must hold the MPI and the code of those before it that run the same."""
    result = place / "result.json"
    if not result.exists():  # accept() will refuse it
        return
    other = json.loads(result.read_text(encoding="utf-8"))
    first = _first_like(folder, other["launch"])
    found = confounders.refusals(results.read_launch(folder, first), other) if first else {}
    if found:
        told = "; ".join(f"{key}: {one} against {two}" for key, (one, two) in found.items())
        raise results.ResultsError(
            f"launches {first} and {name} do not hold the same code ({told}), so they cannot be "
            "compared; measure again into another --out"
        )


def _first_like(folder: Path, asked: Mapping[str, str]) -> str | None:
    """The first finished launch with the same MPI and program."""
    for name in sorted(results.finished(folder)):
        launch = results.read_launch(folder, name)["launch"]
        if (launch["mpi"], launch["program"]) == (asked["mpi"], asked["program"]):
            return name
    return None

"""What a user's program is run with: engines, its image, and a run of it that is held at its start.

Starts runs; decides neither how many nor which of them works.
"""

import contextlib
import os
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import docker

from experiments.console import Stages
from experiments.driver import watchdog
from experiments.emulation import emulated_hosts, keepers
from experiments.emulation.emulated_hosts import Hosts, hosts_to_be
from experiments.emulation.host_plan import Plan
from experiments.environments import profiles
from experiments.environments import program as commands
from experiments.environments.host import over_copies
from experiments.environments.hosts import WaysIn
from experiments.environments.process import Process
from experiments.environments.program import Surroundings, UserImage
from experiments.jobs import containers
from experiments.jobs.execute import running
from experiments.jobs.gate import Gate
from experiments.jobs.slices import Run, RunLost
from experiments.model.arms import HOST, USERLAND
from experiments.model.checkout import BUILD
from experiments.model.environment import ENGINES
from experiments.model.errors import ExperimentsError, Missing
from experiments.model.program import ProgramArm, ProgramRequest
from experiments.processes import executables, scratch
from experiments.processes.folder_lock import FolderLock
from experiments.provision import (
    engine,
    gate_build,
    layers,
    passthrough,
    podman,
    reference_files,
    seccomp,
)
from experiments.provision.image import Image
from experiments.results import store

START_PATIENCE = 120.0  # seconds until an environment executes the program
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
"""What an engine gives the containers of an image that names none."""
MOST_COPIED = 2 * 2**30  # bytes of a folder to work in
LEAST_ROOM = 2**16  # bytes of a file system that is not full


@dataclass
class Place:
    """What a campaign runs with.

    Attributes:
        compiled: the folder with the keeper and the library.
        clients: of the engines, by their names.
        images: the user's image as each engine has it.
        copied: the files that each run on the host has a copy of.
        finalizes: whether all ranks of the program come to MPI_Finalize.
    """

    request: ProgramRequest
    out: Path
    around: Surroundings
    compiled: Path
    clients: dict[str, docker.DockerClient] = field(default_factory=dict)
    images: dict[str, UserImage] = field(default_factory=dict)
    copied: tuple[Path, ...] = ()
    finalizes: bool = True


def preview(request: ProgramRequest) -> list[str]:
    """The command of each environment, as shell lines; starts nothing."""
    around = _surroundings(request, "dry-run")
    folder, work = Path("/tmp/RUN"), Path("/tmp/RUN/work") if request.workdir else None
    shown = UserImage(request.image, layers=("LAYERS", "lowerdir=..."), tree=Path("TREE"))
    lines = []
    for arm in request.arms:
        ways = hosts_to_be(Plan(arm.place.hosts, arm.place.rate)) if arm.place.on_hosts else None
        lines.append(_command(request, around, arm, folder, shown, work, ways).shell())
    return lines


def _surroundings(request: ProgramRequest, label: str) -> Surroundings:
    return Surroundings(
        passthrough.machine(),
        request.ranks,
        passthrough.cores(),
        label,
        passthrough.is_root(),
        seccomp.FILE,
        rootless=podman.is_rootless(),
    )


@contextlib.contextmanager
def ready(
    request: ProgramRequest, label: str, out: Path, lock: FolderLock, stages: Stages
) -> Iterator[Place]:
    """Engines, images and the programs of the gate; containers are removed in every ending."""
    if any(arm.place.on_hosts for arm in request.arms):
        keepers.refuse()
    seccomp.ensure()
    with stages.stage("gate"):
        compiled = gate_build.ensure()
    place = Place(request, out, _surroundings(request, label), compiled)
    with contextlib.ExitStack() as stack:
        for environment in request.environments:
            if not ProgramArm(environment).has_image:
                continue
            name = environment if environment in ENGINES else "docker"
            if name not in place.clients:
                running_engine = podman.running if name == podman.NAME else engine.running
                with stages.stage(f"{name} engine"):
                    place.clients[name] = stack.enter_context(running_engine())
                if name == podman.NAME:
                    rootless = podman.is_rootless(place.clients[name])
                    podman.refuse(rootless, (arm.profile for arm in request.arms))
                    place.around = replace(place.around, rootless=rootless)
                place.images[name] = _image(place.clients[name], name, request.image, stages)
            if environment == USERLAND:
                place.images["docker"] = _with_layers(
                    place.clients["docker"], place.images["docker"]
                )
        stack.enter_context(watchdog.in_engines(lock, label, place.clients))
        yield place


def _image(client: docker.DockerClient, name: str, tag: str, stages: Stages) -> UserImage:
    """The user's image, pulled where the engine does not have it."""
    try:
        held = client.images.get(tag)
    except docker.errors.ImageNotFound:
        with stages.stage(f"{name} pull of {tag}"):
            try:
                client.images.pull(tag)
                held = client.images.get(tag)
            except engine.FAILURES as error:
                why = getattr(error, "explanation", None) or str(error)
                raise Missing(
                    f"{name} has no image {tag} and no registry gives it ({why}): build or load "
                    f"it, see {name} image ls"
                ) from error
    except engine.FAILURES as error:
        raise Missing(
            f"{name} cannot look for the image {tag}: {error}; see ./inv doctor"
        ) from error
    settings = held.attrs.get("Config") or {}
    variables = dict(text.split("=", 1) for text in settings.get("Env") or [] if "=" in text)
    return UserImage(str(held.id), {"PATH": PATH, **variables}, settings.get("WorkingDir") or "/")


def _with_layers(client: docker.DockerClient, image: UserImage) -> UserImage:
    """The image with its layers.

    Raises:
        Missing: they cannot be had.
    """
    try:
        shown = layers.of(client, Image(image.id, image.id, "", "", "", "", False))
    except layers.Unshared as reason:
        raise Missing(
            f"userland needs the files of the engine's containers themselves, because {reason}: "
            "leave it out of --env"
        ) from reason
    return replace(image, layers=(str(shown.folder), shown.option), tree=layers.mount_point())


def _command(
    request: ProgramRequest,
    around: Surroundings,
    arm: ProgramArm,
    folder: Path,
    image: UserImage | None,
    work: Path | None,
    ways: WaysIn | None = None,
    first: Sequence[str] = (),
) -> Process:
    """The command of a run; `first` are words before a program of this machine's files."""
    words = request.words(arm)
    if ways:
        return commands.on_hosts(around, arm, folder, words, work, ways, first)
    if arm.environment == HOST:
        process = commands.on_host(around, arm, folder, words, work)
        return replace(process, argv=(*first, *process.argv))
    assert image
    if arm.environment == USERLAND:
        return commands.over_layers(around, arm, folder, words, image, work)
    return commands.in_container(around, arm, folder, words, image, work, request.options)


@contextlib.contextmanager
def alive(place: Place, arm: ProgramArm, log: Path) -> Iterator[Run]:
    """A run of the program in an environment, held at its first instruction; ended with the block.

    Raises:
        RunLost: the environment does not come to execute it.
    """
    with scratch.folder(scratch.SHORT, "hbmcomm-program-") as folder:
        for part in (commands.GATE_FOLDER, commands.UPPER, commands.OVERLAY):
            (folder / part).mkdir()
            (folder / part).chmod(0o755)
        gate_build.put(folder / commands.GATE_FOLDER, place.compiled)
        if arm.environment == USERLAND:
            _name_hosts(folder / commands.UPPER)
        user, _ = _owner(place, arm)
        with contextlib.ExitStack() as ends:
            hosts = _hosts(arm, folder, ends)
            process = _process(place, arm, folder, hosts)
            gate = ends.enter_context(Gate(folder / commands.GATE_FOLDER, (user,)))
            last = ends.enter_context(contextlib.ExitStack())
            if arm.in_container:
                container = commands.container_name(place.around, folder)
                ends.callback(_remove, place.clients[arm.environment], container)
            try:
                # an engine's processes, such as conmon, are not the run's
                adopted = not (arm.in_container or hosts)
                with executables.adopting_orphans(adopted):
                    poll = ends.enter_context(running(process, log, None))
                    run = Run(gate, poll, adopted, hosts.adopters if hosts else ())
                    last.callback(run.end)
                    run.await_keeper(START_PATIENCE)
            except FileNotFoundError as error:
                raise Missing(
                    f"{process.argv[0]} is not installed, by which {arm.name} is started"
                ) from error
            try:
                yield run
            except RunLost:
                refuse_full(place)
                raise


def _hosts(arm: ProgramArm, folder: Path, ends: contextlib.ExitStack) -> Hosts | None:
    """The emulated hosts of a run, until `ends` ends; None for an environment without."""
    if not arm.place.on_hosts:
        return None
    hosts = ends.enter_context(emulated_hosts.up(arm.place.hosts, arm.place.rate))
    names = folder / commands.GATE_FOLDER / commands.HOST_NAMES
    names.write_text("".join(f"{name}\n" for name in hosts.names), encoding="ascii")
    return hosts


def _process(place: Place, arm: ProgramArm, folder: Path, hosts: Hosts | None) -> Process:
    """The command of a run, with its copies of files and the way to its engine."""
    name = arm.environment if arm.in_container else "docker"
    work, over = _work(place, arm, folder), Process(())
    if place.copied and not arm.has_image:
        listed = reference_files.copied(place.copied, folder / reference_files.FOLDER)
        over = over_copies(over, listed)
    image, ways = place.images.get(name), hosts.ways if hosts else None
    process = _command(place.request, place.around, arm, folder, image, work, ways, over.argv)
    if arm.in_container:
        podmans = name == podman.NAME
        own = podman.variables(BUILD) if podmans else containers.address(place.clients[name])
        process = commands.with_variables(process, own)
    return process


def refuse_full(place: Place) -> None:
    """Refuse to go on without room for results, or for what runs write.

    A program may fail for that, or end as if it had not and leave out what it had no room for.

    Raises:
        ExperimentsError: naming the folder.
    """
    for folder in (place.out, scratch.SHORT):
        state = os.statvfs(folder)
        free = state.f_bfree if place.around.root else state.f_bavail
        if free * state.f_frsize < LEAST_ROOM:
            begun = (place.out / store.PROGRAM).exists()
            again = f"go on: ./inv run --resume --out {place.out}" if begun else "begin again"
            raise ExperimentsError(
                f"the file system of {folder} is full, so a run there may have failed or lost what "
                "it wrote; finished blocks are kept. Make room (df -h shows what is full), then "
                f"{again}"
            )


def refuse_dead_engines(place: Place) -> None:
    """Refuse to go on without an engine: all its runs would be lost.

    Raises:
        Missing: one does not answer.
    """
    for name, client in place.clients.items():
        try:
            client.ping()
        except engine.FAILURES as error:
            raise Missing(
                f"{name} no longer answers ({error}); finished blocks are kept. Start it, then go "
                f"on: ./inv run --resume --out {place.out}"
            ) from error


def _name_hosts(upper: Path) -> None:
    """Give a layer this machine's /etc/hosts, as engines give containers one.

    It is not mounted over that of the image: symbolic links in an image may lead out of it.
    """
    folder = upper / "etc"
    folder.mkdir()
    folder.chmod(0o755)
    hosts = Path("/etc/hosts")
    text = hosts.read_text(encoding="utf-8") if hosts.exists() else "127.0.0.1 localhost\n"
    (folder / "hosts").write_text(text, encoding="utf-8")
    (folder / "hosts").chmod(0o644)


def _remove(client: docker.DockerClient, container: str) -> None:
    with contextlib.suppress(*engine.FAILURES):
        client.api.remove_container(container, v=True, force=True)


def _owner(place: Place, arm: ProgramArm) -> tuple[int, int]:
    """uid and gid of an environment's run, as this machine sees them."""
    machine = place.around.machine
    return profiles.owner(arm.profile, (machine.uid, machine.gid), machine.lent)


def _work(place: Place, arm: ProgramArm, folder: Path) -> Path | None:
    """A fresh copy of the folder that the program works in; None where the image has its own.

    On the host that is the current folder, where none is given.
    """
    request = place.request
    if not request.workdir and arm.has_image:
        return None
    copied, copy = request.workdir or ".", folder / commands.WORK_FOLDER
    try:
        shutil.copytree(copied, copy, symlinks=True, ignore_dangling_symlinks=True, ignore=_sockets)
    except OSError as error:
        refuse_full(place)
        reason = error.args[0][0][-1] if isinstance(error, shutil.Error) else error
        raise ExperimentsError(
            f"{Path(copied).absolute()} cannot be copied for a run to work in: {reason}; name a "
            "folder that can be read with --workdir"
        ) from error
    owner = _owner(place, arm)
    if place.around.root and arm.has_image:
        for path in (copy, *copy.rglob("*")):
            os.chown(path, *owner, follow_symlinks=False)
    return copy


def _sockets(folder: str, names: list[str]) -> list[str]:
    """What of a folder cannot be copied: sockets, pipes and devices."""
    return [
        name
        for name in names
        if not (Path(folder, name).is_symlink() or Path(folder, name).is_file())
        and not Path(folder, name).is_dir()
    ]


def source(request: ProgramRequest) -> Path | None:
    """The folder that runs work in copies of; None where each image has its own."""
    if request.workdir:
        return Path(request.workdir)
    return None if all(arm.has_image for arm in request.arms) else Path.cwd()


def refuse_large(request: ProgramRequest) -> None:
    """Refuse a folder to work in that is too large to be copied for each run.

    Raises:
        ExperimentsError: with its size.
    """
    copied, total = source(request), 0
    for folder, _, names in os.walk(copied) if copied else ():
        for name in names:
            with contextlib.suppress(OSError):
                total += Path(folder, name).lstat().st_size
        if total > MOST_COPIED:
            what = "--workdir" if request.workdir else "the current folder"
            raise ExperimentsError(
                f"{what} {copied} holds more than {MOST_COPIED // 2**30} GiB, and each run works "
                "in a fresh copy of it: name a smaller folder with --workdir"
            )

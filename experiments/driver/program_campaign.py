"""What a container costs a user's program: from a request to a finished results folder.

Each environment runs the program once by itself, which shows whether it runs there at all and what
of it can be timed. Then come blocks: one run in each environment, all alive, one at work at a time.
"""

import calendar
import contextlib
import hashlib
import math
import os
import random
import re
import sys
import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

from experiments.console import Display, Stages, printable
from experiments.driver import program_place, watchdog
from experiments.driver.program_place import Place
from experiments.jobs.slices import Run, RunLost, Unstoppable
from experiments.machine import cache_line, cgroup, facts, loaded
from experiments.machine.cache_line import CacheLine
from experiments.model import plain_file
from experiments.model.arms import HOST
from experiments.model.errors import ExperimentsError
from experiments.model.program import LINE, ProgramArm, ProgramRequest, Timed
from experiments.model.quantities import bytes_text, counted
from experiments.processes import executables, ownership, scratch
from experiments.processes.files import last_lines
from experiments.provision import image, reference_files
from experiments.results import program_runs, store
from experiments.results.program_runs import ArmRun, Habitat, ProgramBlock, ProgramHeader

READY_PATIENCE = 300.0  # seconds until all ranks that an mpiexec of ours starts have left MPI_Init
END_PATIENCE = 60.0  # seconds that a program may take behind what is timed
TERM_PATIENCE = 5.0  # seconds from SIGTERM to SIGKILL, where only a part of a run is timed
MOST_WORK, LEAST_LIMIT = 20, 120.0
"""A run may work so many times as long as the first one in its environment, or so many seconds."""
MOST_MEMORY = 0.8  # of what is available, that all runs of a block may take together
ALONE_SLICE = 10.0  # seconds of a slice of a run that is the last of its block
SLICE, SHORTEST, SLICES = 0.1, 0.02, 30
"""Seconds of a slice; of a short program's; and how many a program has at least, if it can."""
MOST_MAPPED = 2 * 2**30  # bytes of files that the host maps code from, and each run copies
TRUSTED = 2  # runs that an environment may lose in slices before these are taken to be the reason
CLOCK = "%Y-%m-%dT%H:%M:%SZ"  # in UTC
FIRST = "first"  # in the name of a first run's log
LAST_LINES = 12  # of a log, in a message
MOST_LOG = 16 * 2**20  # bytes at a log's end that are searched for the program's own figure


def run(request: ProgramRequest, out: Path, stages: Stages, seed: int | None = None) -> list[str]:
    """Measure a new campaign; why runs were lost, in lines.

    Raises:
        ExperimentsError: the program does not run where it must, or nothing is left to compare.
    """
    store.refuse_existing(out)
    header = ProgramHeader(
        request,
        os.urandom(6).hex(),
        random.SystemRandom().getrandbits(31) if seed is None else seed,
        SLICE,
        machine=facts.machine(),
        git=image.revision(),
        began=time.strftime(CLOCK, time.gmtime()),
        command=tuple(printable(word) for word in sys.argv),
        folder="" if Path(request.workdir).is_absolute() else _here(),
    )
    return _in_place(header, out, stages, begun=False)


def resume(out: Path, stages: Stages) -> list[str]:
    """Run the blocks that a campaign lacks, as it was begun."""
    stored = program_runs.read_runs(out)
    whole = [block for block in stored.blocks if not block.lost]
    if len(whole) >= stored.header.request.blocks:
        stages.say(f"the campaign in {out} is complete; read it: ./inv report --results {out}")
        return []
    begun_in = stored.header.folder
    if begun_in and begun_in != _here() and program_place.source(stored.header.request):
        raise ExperimentsError(
            f"the campaign in {out} runs a program in copies of the folder where it began, and "
            f"{Path.cwd()} is another one: go there, and give --out {out.resolve()}"
        )
    return _in_place(stored.header, out, stages, begun=True)


def _in_place(header: ProgramHeader, out: Path, stages: Stages, begun: bool) -> list[str]:
    label = f"{header.id}-{ownership.digest_of(out)}"
    with (
        watchdog.watching(out, stages.say) as lock,
        program_place.ready(header.request, label, out, lock, stages) as place,
        executables.adopting_orphans(),
    ):
        rehearsal = Rehearsal(place, stages)
        if begun:
            _refuse_other_image(place, header, out)
            rehearsal.run_reference()
            _say_changes(place, header, stages)
        else:
            header = rehearsal.run(header)
            program_runs.write_header(out, header)
        try:
            return Blocks(place, header, stages).run()
        except KeyboardInterrupt:
            again = f"./inv run --resume --out {out}"
            stages.say(f"stopped; finished blocks are kept. To go on: {again}")
            raise


def _here() -> str:
    """The current folder, without its name: an archive has none of this machine."""
    return hashlib.sha256(os.fsencode(Path.cwd())).hexdigest()[:16]


def _refuse_other_image(place: Place, header: ProgramHeader, out: Path) -> None:
    """Refuse to go on with an image that was made anew under the same name."""
    held = _image_ids(place)
    if header.image_id and held != header.image_id:
        raise ExperimentsError(
            f"the image {header.request.image} has changed since the campaign in {out} began "
            f"({header.image_id} then, {held} now): measure again into another --out"
        )


def _image_ids(place: Place) -> str:
    """The image's id; more than one where engines have different images of its name."""
    return " ".join(sorted({image.id for image in place.images.values()}))


def _say_changes(place: Place, header: ProgramHeader, stages: Stages) -> None:
    """Say which files of the program are newer than the campaign: its blocks may differ."""
    began = calendar.timegm(time.strptime(header.began, CLOCK)) + 1  # it has no fractions
    files, out = list(place.copied), place.out.resolve()
    source = program_place.source(place.request)
    for folder, below, names in os.walk(source) if source else ():
        below[:] = [name for name in below if Path(folder, name).resolve() != out]
        files += [Path(folder, name) for name in names]
    changed = []
    for file in files:
        with contextlib.suppress(OSError):
            if file.lstat().st_ctime > began:
                changed.append(file)
    if changed:
        more = f" and {len(changed) - 1} more" if changed[1:] else ""
        stages.say(
            f"{changed[0]}{more} changed since the campaign began: if that changes what the "
            "program does, earlier blocks are of another one; then measure again into another --out"
        )


class Rehearsal:
    """The first runs of a program: one in each environment, by itself and to its end."""

    def __init__(self, place: Place, stages: Stages) -> None:
        self._place, self._stages = place, stages
        self._arms = [arm for arm in place.request.arms if not arm.twin and arm.counted]

    def run_reference(self) -> tuple[Habitat, str]:
        """The reference's first run; and why runs on the host have no copies of their files."""
        reference = self._arms[0]
        with self._stages.stage(f"first run, {reference.name}"):
            try:
                habitat, mapped = self._run(reference)
            except RunLost as loss:
                raise ExperimentsError(_reason(self._place, reference, FIRST, loss)) from loss
        if reference.has_image:
            return habitat, ""
        try:
            if sum(path.stat().st_size for path in mapped) > MOST_MAPPED:
                raise reference_files.NotCopied("it maps more than 2 GiB of files")
            reference_files.try_copies(mapped, scratch.SHORT, ("true",))
        except reference_files.NotCopied as reason:
            self._stages.say(f"all runs on the host share its files, because {reason}")
            return habitat, str(reason)
        self._place.copied = mapped
        return habitat, ""

    def run(self, header: ProgramHeader) -> ProgramHeader:
        """The header with what the first runs showed.

        Raises:
            ExperimentsError: the program does not run in the reference, or nowhere else.
        """
        request = self._place.request
        reference, uncopied = self.run_reference()
        habitats, missing = [reference], {}
        for arm in self._arms[1:]:
            with self._stages.stage(f"first run, {arm.name}"):
                try:
                    habitats.append(self._run(arm)[0])
                except RunLost as loss:
                    missing[arm.name] = _reason(self._place, arm, FIRST, loss)
                    self._stages.say(missing[arm.name])
        if request.seconds and not request.metric and not any(one.ranks for one in habitats):
            raise ExperimentsError(
                "--seconds compares how far runs get, and this program has no calls of MPI that "
                "show it: name the program's own count of steps with --metric, "
                r"such as --metric 'step (\d+)'"
            )
        if missing and len(habitats) == 1:
            raise ExperimentsError("\n".join(missing.values()))
        if len({habitat.timed for habitat in habitats}) > 1:
            seen = "; ".join(f"{one.arm}: {one.ranks} ranks" for one in habitats)
            self._stages.say(f"MPI is not seen everywhere, so the whole program is timed: {seen}")
            habitats = [replace(habitat, timed=Timed.WHOLE) for habitat in habitats]
        shortest = min(habitat.seconds for habitat in habitats)
        return replace(
            header,
            slice=max(SHORTEST, min(SLICE, shortest / SLICES)),
            image_id=_image_ids(self._place),
            habitats=tuple(habitats),
            missing=missing,
            copied=uncopied,
        )

    def _run(self, arm: ProgramArm) -> tuple[Habitat, tuple[Path, ...]]:
        """A first run, and the files that the program mapped code from."""
        request, libraries = self._place.request, dict[str, str]()
        mapped: dict[str, None] = {}
        variables: dict[str, str] = {}
        peak = 0

        def look() -> None:
            nonlocal peak
            pids = first.pids
            libraries.update(loaded.loaded(pids))
            if first.gate.keeper:  # what ranks have beside is of their launcher
                variables.update(loaded.variables([first.gate.keeper.pid]))
            peak = max(peak, loaded.resident(pids))
            for pid in pids:
                mapped.update(dict.fromkeys(loaded.mapped_code(pid)))

        with program_place.alive(self._place, arm, _log(self._place, arm, FIRST)) as first:
            assert first.gate.keeper
            quota = cgroup.quota(str(first.gate.keeper.pid))
            began = time.monotonic()
            patience = READY_PATIENCE if request.ranks else None
            has_ranks = first.open_gate(patience, look, request.seconds)
            if has_ranks:
                look()
                if request.ranks and first.gate.size != request.ranks:
                    raise RunLost(
                        f"its mpiexec was to start {request.ranks} ranks, and a rank says that "
                        f"there are {first.gate.size}: it is not of the program's MPI"
                    )
                if any(
                    loaded.has_large_counts(one.pid, one.library)
                    for one in first.gate.ranks.values()
                ):
                    self._place.around.large.add(arm.name)
                cut_off = not first.work(request.seconds or None)
                look()
            else:
                cut_off = bool(request.seconds)
            seconds = first.seconds if has_ranks else time.monotonic() - began
            if cut_off:
                _cut_off(first)
            else:
                hint = _hint(first) if request.ranks or first.gate.ranks else ""
                code = first.finish(END_PATIENCE)
                program_place.refuse_full(self._place)
                if arm == self._arms[0]:
                    self._place.finalizes = not first.unfinished
                _check(self._place, first, code, hint)
                self._say_outlived(arm, first)
            _metric(request.metric, _log(self._place, arm, FIRST), sys.maxsize, -1.0 * cut_off)
            ranks, allows = len(first.gate.ranks), first.gate.facts
            if first.gate.is_repeated:
                self._stages.say(f"{arm.name} runs several MPI programs, which are timed as one")
                has_ranks, seconds = False, time.monotonic() - began
        timed = Timed.RANKS if has_ranks else Timed.WHOLE
        large, hosts = arm.name in self._place.around.large, (arm.place.hosts, arm.place.rate)
        seen = (ranks, allows, quota, libraries, large, variables, peak)
        habitat = Habitat(arm.name, timed, seconds, *seen, *hosts)
        return habitat, tuple(path for path in map(Path, mapped) if path.is_file())

    def _say_outlived(self, arm: ProgramArm, first: Run) -> None:
        if first.outlived:
            self._stages.say(
                f"in {arm.name} {', '.join(first.outlived)} outlived the program's first process, "
                "and is ended with it in each run: if that does its work, have it stay in the "
                "foreground"
            )


class Blocks:
    """The blocks of a campaign."""

    def __init__(self, place: Place, header: ProgramHeader, stages: Stages) -> None:
        self._place, self._header, self._stages = place, header, stages
        place.around.large.update(one.arm for one in header.habitats if one.large)
        whole = header.habitats[0].timed == Timed.WHOLE
        place.around = replace(place.around, whole=whole)
        self._habitats = {habitat.arm: habitat for habitat in header.habitats}
        self._arms = [arm for arm in place.request.arms if arm.base in self._habitats]
        self._alone = _unpausable(header) or self._crowded()
        """Why the runs of a block are not alive together."""
        self._line: CacheLine | None = None

    def run(self) -> list[str]:
        """Run those that are missing; why runs were lost, in lines."""
        out, wanted = self._place.out, self._header.request.blocks
        stored = program_runs.read_runs(out).blocks
        done = {block.number for block in stored if not block.lost}
        once = sum(self._seconds(arm) for arm in self._arms)
        minutes = max(0.1, 1.2 * once * (wanted - len(done)) / 60)
        names = ", ".join(arm.name for arm in self._arms)
        self._stages.say(f"{counted(wanted, 'block')} of {names}: about {minutes:.1f} min")
        if self._alone:
            self._stages.say(f"runs work one after the other, since {self._alone}")
        failures, losses = dict(self._header.missing), dict[str, int]()
        with (
            Display(wanted, len(done)) as display,
            cache_line.between_cpus(self._place.compiled / LINE) as self._line,
        ):
            for number in sorted(set(range(wanted)) - done):
                display.begin(f"block {number}")
                block = self._block(number, display)
                if any(arm.in_container and arm.name in block.lost for arm in self._arms):
                    program_place.refuse_dead_engines(self._place)
                for name, why in block.lost.items():
                    display.say(why)
                    failures[name], losses[name] = why, losses.get(name, 0) + 1
                    if block.in_turns and losses[name] >= TRUSTED:
                        self._alone = f"{name} was lost {TRUSTED} times"
                        display.say(f"runs are no longer stopped, since {self._alone}")
                program_runs.write_block(out, block)
                display.end()
        return list(failures.values())

    def _seconds(self, arm: ProgramArm) -> float:
        """How long a run is expected to work."""
        return self._header.request.seconds or self._habitats[arm.base].seconds

    def _crowded(self) -> str:
        """Why there is no room for all runs of a block at once; "" where there is."""
        needed = sum(self._habitats[arm.base].peak for arm in self._arms)
        free = facts.available_memory()
        if not free or needed <= MOST_MEMORY * free:
            return ""
        return (
            f"all of a block would take {bytes_text(needed)} of memory together, and "
            f"{bytes_text(free)} are available"
        )

    def _limit(self, arm: ProgramArm) -> float:
        """Seconds after which a run is taken to have no end."""
        return max(LEAST_LIMIT, MOST_WORK * self._habitats[arm.base].seconds)

    def _block(self, number: int, display: Display) -> ProgramBlock:
        """One run in each environment, in turns where they can be stopped."""
        order = random.Random(f"{self._header.seed}.{number}")
        if not self._alone:
            try:
                return self._in_turns(number, order, display)
            except Unstoppable as reason:
                self._alone = str(reason)
                display.say(f"runs work one after the other, since {reason}")
        return self._one_by_one(number, order, display)

    def _in_turns(self, number: int, order: random.Random, display: Display) -> ProgramBlock:
        alive: dict[str, Run] = {}
        lost, results = dict[str, str](), dict[str, ArmRun]()
        with contextlib.ExitStack() as block:
            for arm in order.sample(self._arms, len(self._arms)):
                try:
                    alive[arm.name] = block.enter_context(self._ready(arm, number))
                except RunLost as loss:
                    lost[arm.name] = _reason(self._place, arm, str(number), loss)
            arms = {arm.name: arm for arm in self._arms}
            expected = sum(self._seconds(arms[name]) for name in alive)
            while alive:
                for name in order.sample(list(alive), len(alive)):
                    if self._line:
                        alive[name].lines.append(self._line.nanoseconds())
                    if self._work(alive[name], company=len(alive) > 1):
                        self._take(arms[name], number, alive.pop(name), results, lost)
                    elif alive[name].seconds > self._limit(arms[name]):
                        endless = _endless(self._limit(arms[name]))
                        lost[name] = _reason(self._place, arms[name], str(number), endless)
                        alive.pop(name).kill()
                left = (self._seconds(arms[name]) - run.seconds for name, run in alive.items())
                display.within(max(0.0, 1 - sum(left) / max(expected, 1e-9)))
        runs = tuple(results[arm.name] for arm in self._arms if arm.name in results)
        return ProgramBlock(number, True, runs, lost)

    def _one_by_one(self, number: int, order: random.Random, display: Display) -> ProgramBlock:
        lost, results = dict[str, str](), dict[str, ArmRun]()
        for count, arm in enumerate(order.sample(self._arms, len(self._arms))):
            try:
                with self._ready(arm, number, stopped=False) as run:
                    window = self._header.request.seconds
                    if not run.work(window or self._limit(arm), stop=False) and not window:
                        raise _endless(self._limit(arm))
                    self._take(arm, number, run, results, lost)
            except RunLost as loss:
                lost[arm.name] = _reason(self._place, arm, str(number), loss)
            display.within((count + 1) / len(self._arms))
        runs = tuple(results[arm.name] for arm in self._arms if arm.name in results)
        return ProgramBlock(number, False, runs, lost)

    @contextlib.contextmanager
    def _ready(self, arm: ProgramArm, number: int, stopped: bool = True) -> Iterator[Run]:
        """A run that is held where what is timed of it begins."""
        log = _log(self._place, arm, str(number))
        with program_place.alive(self._place, arm, log) as run:
            run.make_ready(Timed(self._header.habitats[0].timed), READY_PATIENCE, stopped)
            yield run

    def _work(self, run: Run, company: bool) -> bool:
        """A slice of a run; whether what is timed of it is over."""
        window = self._header.request.seconds
        left = window - run.seconds if window else None
        if not company:
            return run.work(ALONE_SLICE if left is None else left) or bool(window)
        length = self._header.slice if left is None else min(self._header.slice, left)
        return run.work(length) or bool(window and run.seconds >= window - SHORTEST)

    def _take(
        self,
        arm: ProgramArm,
        number: int,
        run: Run,
        results: dict[str, ArmRun],
        lost: dict[str, str],
    ) -> None:
        """Let a run end, and keep what it showed."""
        counts, log, written = run.counts(), _log(self._place, arm, str(number)), sys.maxsize
        try:
            if self._header.request.seconds and not run.is_over:
                size = log.stat().st_size
                if not _cut_off(run):  # what it printed while it was asked to end is not of it
                    written = size
            else:
                _check(self._place, run, run.finish(END_PATIENCE))
            metric = _metric(self._header.request.metric, log, written)
        except RunLost as loss:
            lost[arm.name] = _reason(self._place, arm, str(number), loss)
        program_place.refuse_full(self._place)
        if arm.name in lost:
            return
        results[arm.name] = ArmRun(
            *(arm.name, run.seconds, run.slices, run.started, run.readied, metric, counts),
            tuple(run.lines),
        )


def _unpausable(header: ProgramHeader) -> str:
    """Why runs may not be stopped; "" where they may.

    A quota is of each period of 0.1 s: while a run is stopped it is given time that it did not use.
    """
    if header.request.metric and not header.request.seconds:
        return "a figure of the program's own, as of --metric, often comes from the clock"
    limited = [one for one in header.habitats if 0 < one.quota < one.allows.get("cpus", 0)]
    if not limited:
        return ""
    return f"{limited[0].arm} has a quota of CPU time, which recovers while a run is stopped"


def _log(place: Place, arm: ProgramArm, when: str) -> Path:
    """The file that a run's output goes to; its folder is there."""
    folder = place.out / "logs"
    folder.mkdir(parents=True, exist_ok=True)
    return folder / f"{when.rjust(4, '0') if when.isdigit() else when}-{arm.name}.log"


def _hint(run: Run) -> str:
    """What of an environment is known to end programs."""
    if run.gate.facts.get("reading"):
        return (
            "; its ranks may not read each other's memory there, which ends some MPIs: try "
            "--profiles tuned, or --options '--cap-add SYS_PTRACE'"
        )
    return ""


def _cut_off(run: Run) -> bool:
    """Have a run end of which only a part is timed; whether it ended when it was asked to."""
    run.terminate()
    if run.finish(TERM_PATIENCE) is not None:
        return True
    run.kill()
    run.finish(END_PATIENCE)
    return False


def _endless(seconds: float) -> RunLost:
    return RunLost(f"worked for {seconds:.0f} s without an end, unlike the first run there")


def _check(place: Place, run: Run, code: int | None, hint: str = "") -> None:
    """Refuse a run that did not end well.

    Args:
        code: of its end.
        hint: why that may be.
    """
    if code is None:
        raise RunLost(f"did not end within {END_PATIENCE:.0f} s of MPI_Finalize")
    if code:
        raise RunLost(f"ended with exit code {code}{hint}")
    if run.unfinished and place.finalizes:
        raise RunLost(
            f"rank {min(run.unfinished)} ended without MPI_Finalize, unlike in the first run, and "
            "the exit code, which is 0, does not show it"
        )


def _reason(place: Place, arm: ProgramArm, when: str, loss: RunLost) -> str:
    """Why a run was lost, for a user: with what it printed last."""
    log = _log(place, arm, when)
    words = place.request.words(arm)
    output = "".join(f"\n  {line}" for line in last_lines(log, LAST_LINES)) if log.exists() else ""
    where = "on this machine" if arm.environment == HOST else f"in {arm.name}"
    return f"{words[0]!r} {where}: {loss}; its log is {log}{output}"


def _metric(pattern: str, log: Path, most: int, least: float = 0.0) -> float | None:
    """The last figure of the program's own, in so many bytes of its output.

    Args:
        least: the figure is above it: below 0 where no ratio is taken of it, as of a part of a
            first run, which may not have got far.

    Raises:
        RunLost: there is none, or none of which a ratio can be taken.
    """
    if not pattern:
        return None
    with plain_file.opened(log) as file:
        end = min(most, os.fstat(file.fileno()).st_size)
        file.seek(max(0, end - MOST_LOG))
        text = file.read(min(end, MOST_LOG)).decode(errors="replace")
    figure = None
    for match in re.finditer(pattern, text):
        with contextlib.suppress(TypeError, ValueError):
            figure = float(match[1])
    if figure is None:
        raise RunLost(f"printed no number in the first group of --metric {pattern!r}")
    if not least < figure < math.inf:
        raise RunLost(f"printed {figure:g} for --metric {pattern!r}, which must be above 0")
    return figure

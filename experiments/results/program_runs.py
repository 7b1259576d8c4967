"""What a campaign of a user's program stores: written whole or not at all, and read as types.

results/<campaign>/program.json      what was asked, and what each environment is
results/<campaign>/blocks/0003.json  one block: a run in each environment, which took turns
results/<campaign>/logs/             what the program printed
"""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, TypeVar

from experiments.model.program import BANDS, FORMAT, CallCount, ProgramRequest
from experiments.results import local_names, store, typed
from experiments.results.store import ResultsError

NAME = store.PROGRAM
BLOCKS = "blocks"


@dataclass(frozen=True)
class Habitat:
    """An environment as the program's first run there met it.

    Attributes:
        arm: the name of the environment.
        timed: what of the program is timed, one of program.Timed.
        seconds: of what is timed, in that first run.
        ranks: that came to the gate.
        allows: what keeper.c found that it allows, by name; 0 is "yes" for what has an errno.
        quota: CPUs' worth of time that its cgroup may use; 0.0 where that has no limit.
        libraries: the C library, MPI and BLAS of its ranks, by these names.
        large: whether its MPI has calls with counts of 64 bits.
        variables: that the program began with, of those that change how fast it is.
        peak: bytes of memory that its processes held at most.
        hosts: how many emulated hosts its ranks are on; 0 on this machine itself.
        rate: of their links.
    """

    arm: str
    timed: str
    seconds: float
    ranks: int = 0
    allows: dict[str, int] = field(default_factory=dict)
    quota: float = 0.0
    libraries: dict[str, str] = field(default_factory=dict)
    large: bool = False
    variables: dict[str, str] = field(default_factory=dict)
    peak: int = 0
    hosts: int = 0
    rate: str = ""


@dataclass(frozen=True)
class ArmRun:
    """A run of the program in one environment.

    Attributes:
        seconds: that it worked in what is timed; its slices, added up.
        slices: how many.
        started: seconds until the environment began to execute it.
        readied: seconds from there until all ranks had left MPI_Init.
        metric: the figure that it printed itself.
        calls: of all its ranks in what is timed, by names without "MPI_".
        lines: nanoseconds that a cache line took between two CPUs and back, before each slice; 0
            where that was not seen.
    """

    arm: str
    seconds: float
    slices: int
    started: float
    readied: float
    metric: float | None = None
    calls: dict[str, CallCount] = field(default_factory=dict)
    lines: tuple[int, ...] = ()


@dataclass(frozen=True)
class ProgramBlock:
    """The runs of a block.

    Attributes:
        in_turns: whether they were alive together, one at work while the others were stopped.
        lost: why there is no run of an environment.
    """

    number: int
    in_turns: bool
    runs: tuple[ArmRun, ...]
    lost: dict[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProgramHeader:
    """program.json.

    Attributes:
        image_id: of the image; "" without one.
        missing: {name of an environment: why it is left out}.
        slice: seconds of a slice.
        copied: whether each run on the host has files of its own; else why not.
        folder: a hash of the path of which runs on the host work in copies; "" with --workdir.
    """

    request: ProgramRequest
    id: str
    seed: int
    slice: float
    image_id: str = ""
    habitats: tuple[Habitat, ...] = ()
    missing: dict[str, str] = field(default_factory=dict)
    copied: str = ""
    machine: dict[str, str] = field(default_factory=dict)
    git: str = ""
    began: str = ""
    command: tuple[str, ...] = ()
    folder: str = ""
    format: int = FORMAT


@dataclass(frozen=True)
class ProgramRuns:
    """A whole campaign of a user's program."""

    folder: Path
    header: ProgramHeader
    blocks: tuple[ProgramBlock, ...]

    @property
    def habitats(self) -> dict[str, Habitat]:
        """By the names of the environments, the reference first."""
        return {habitat.arm: habitat for habitat in self.header.habitats}


def is_program(folder: Path) -> bool:
    """Whether a results folder is of a user's program."""
    return (folder / NAME).is_file()


def write_header(folder: Path, header: ProgramHeader) -> None:
    """Begin a results folder."""
    (folder / BLOCKS).mkdir(parents=True, exist_ok=True)
    store.write_json(folder / local_names.FILE, local_names.here(folder))
    store.write_json(folder / NAME, asdict(header))


def write_block(folder: Path, block: ProgramBlock) -> None:
    """Add a block that is finished."""
    store.write_json(folder / BLOCKS / f"{block.number:04d}.json", asdict(block))


def read_runs(folder: Path) -> ProgramRuns:
    """A campaign of a user's program, as far as it is measured.

    Raises:
        ResultsError: a file cannot be read, or is none of such a campaign.
    """
    header = _read(folder / NAME, ProgramHeader)
    if header.format > FORMAT:
        raise ResultsError(
            f"{folder / NAME} is of format {header.format}, and this version of hbmcomm reads "
            f"formats up to {FORMAT}: take a newer one"
        )
    blocks = tuple(
        _read(path, ProgramBlock) for path in sorted((folder / BLOCKS).glob("[0-9]*.json"))
    )
    for block in blocks:
        for run in block.runs:
            for name, count in run.calls.items():
                if not len(count.calls) == len(count.nanoseconds) == BANDS:
                    raise ResultsError(
                        f"block {block.number} in {folder} counts {name} in other bands of sizes "
                        "than this version: it is damaged; measure again"
                    )
    return ProgramRuns(folder, header, blocks)


Kind = TypeVar("Kind")


def _read(path: Path, kind: type[Kind]) -> Kind:
    # pydantic takes a quarter of a second, which other readers of results need not pay
    from experiments.model import validation

    try:
        values: Mapping[str, Any] = typed.json_object(path)
    except (OSError, ValueError) as error:
        raise ResultsError(
            f"{path} cannot be read ({error}); name another folder with --results, or measure "
            "again: ./inv run --program"
        ) from error
    return validation.read(kind, dict(values), str(path), stored=True)

"""What a user says once of a cluster, in ~/.config/hbmcomm/sites.toml.

A table for each site. Nothing in it is about an experiment.
"""

import os
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationInfo

from experiments.model.environment import CONTAINERS, LAUNCHERS, MPIS
from experiments.model.errors import ExperimentsError, unknown
from experiments.model.validation import Count, Flag, Form, Line, Name, among, read, toml

PMI = {"openmpi": "pmix", "mpich": "pmi2", "impi": "pmi2"}
"""What `srun --mpi` is to offer each MPI; under another one, ranks are alone in jobs of one."""

TIME = r"^([0-9]+(-[0-9]+)?(:[0-9]{2}){0,2})?$"

Lines = Annotated[tuple[Line, ...], Field(title="a list of lines")]
Folder = Annotated[
    str, Field(strict=True, pattern=r"^(/.*)?$", title="an absolute path, alike on all nodes")
]
Table = Annotated[dict[str, str], Field(title='a table: { NAME = "value" }')]
Word = Annotated[str, Field(strict=True, pattern=r"^( |[^\pC\pZ])*$", title="as sbatch takes it")]


def _for(*known: str) -> AfterValidator:
    """Refuses a table with a key that is none of these."""

    def check(table: dict[str, str], info: ValidationInfo) -> dict[str, str]:
        for key in table:
            if key not in known:
                raise ValueError(f"{unknown('key', key, known)} [{info.field_name}]")
        return table

    return AfterValidator(check)


class Site(Form):
    """One cluster, as its users reach it.

    Attributes:
        partition, account, constraint, qos: as sbatch takes them; "" leaves the option out.
        time: limit of a job, as sbatch takes it; "" takes the campaign's forecast.
        nodes: of a job, where --nodes is not given.
        exclusive: whether the job has its nodes alone; measurements beside other jobs mean little.
        options: further options of sbatch.
        prepare: lines of a shell that a job runs first: modules, variables.
        launcher: of LAUNCHERS, where --launcher is not given.
        turns: whether launches of a block are alive together and take turns; false where the
            network has too few contexts for the ranks of all.
        shared: folder that all nodes see, for results; "" where the checkout is on one.
        pmi: by MPI, what `srun --mpi` offers.
        images: by container, what it runs: a path that may hold {mpi}; without one, the image
            that this machine's Docker unpacks.
        variables: for every rank.
    """

    partition: Word = ""
    account: Word = ""
    constraint: Word = ""
    qos: Word = ""
    time: Annotated[
        str, Field(strict=True, pattern=TIME, title="minutes, or HOURS:MINUTES:SECONDS")
    ] = ""
    nodes: Count = 1
    exclusive: Flag = True
    options: Lines = ()
    prepare: Lines = ()
    launcher: Annotated[Name, among(*LAUNCHERS)] = LAUNCHERS[0]
    turns: Flag = True
    shared: Folder = ""
    pmi: Annotated[Table, _for(*MPIS)] = Field(default_factory=dict)
    images: Annotated[Table, _for(*CONTAINERS)] = Field(default_factory=dict)
    variables: Table = Field(default_factory=dict)

    def pmi_of(self, flavour: str) -> str:
        """What `srun --mpi` offers an MPI."""
        return self.pmi.get(flavour, PMI[flavour])

    def image_of(self, container: str, flavour: str) -> Path | None:
        """What a container runs, None for the image that Docker unpacks."""
        named = self.images.get(container)
        return Path(named.replace("{mpi}", flavour)) if named else None


def path() -> Path:
    """The file, which may be missing."""
    home = os.environ.get("XDG_CONFIG_HOME") or "~/.config"
    return Path(home).expanduser() / "hbmcomm" / "sites.toml"


def load(name: str, file: Path) -> tuple[str, Site]:
    """A site of the file, and its name.

    Args:
        name: "" for the only site there; where there is no file, for one without any option.

    Raises:
        ExperimentsError: with what was found and what to write.
    """
    if not file.is_file():
        if name:
            raise ExperimentsError(
                f"site {name!r} was asked for and there is no {file}; write it: docs/clusters.md "
                "has examples"
            )
        return "", Site()
    tables = toml(file, str(file))
    if not name and len(tables) != 1:
        raise ExperimentsError(
            f"{file} has {len(tables)} sites, {', '.join(tables)}; name one with --site"
        )
    chosen = name or next(iter(tables))
    if chosen not in tables:
        raise ExperimentsError(f"{file}: {unknown('site', chosen, tables)}")
    return chosen, read(Site, tables[chosen], f"{file} [{chosen}]")

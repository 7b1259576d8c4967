"""A campaign as one value: made of an experiment and a request, or read from campaign.json."""

import os
import random
import re
import stat
import sys
import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import hbmcomm
from experiments.cluster import sites
from experiments.console import printable
from experiments.emulation import description
from experiments.machine import binding, facts
from experiments.model.checkout import OTHER_BUILDS
from experiments.model.contender_names import OTHER_PACKAGE
from experiments.model.errors import ExperimentsError
from experiments.model.experiment import Experiment
from experiments.model.launch import PACKED, Block, Launch
from experiments.model.trials import Place, trials
from experiments.processes import ownership
from experiments.provision import base_image, image
from experiments.results import store
from experiments.schedule.blocks import schedule

DRY_RUN = "dry-run"
ELSEWHERE = "measure again into another --out"
HBM_VARIABLES = ("MEMKIND_HBW_NODES", "MEMKIND_HBW_THRESHOLD", "MEMKIND_DAX_KMEM_NODES")
"""Where a user says that HBM is, to memkind and to us; every arm has them."""
VARIABLES = {
    **dict.fromkeys(HBM_VARIABLES, r"[\w,:-]*"),
    OTHER_PACKAGE: rf"{re.escape(str(OTHER_BUILDS))}/[0-9a-f]+/hbmcomm",
}
"""The variables that a campaign gives its ranks, and the form of their values."""
AGAIN = {"python": ("",), "site": ("",), "base": (base_image.AUTO, base_image.BOOTSTRAP)}
"""Flags that choose what programs run, each with the values that choose none of another user's. A
user gives another value again for --resume: campaign.json may be of anyone."""


@dataclass(frozen=True)
class Request:
    """What a campaign needs beside its experiment.

    Attributes:
        out: the results folder, to begin or to complete.
        base: base image: "auto", "bootstrap" or an image's name.
        seed: of every random order; None draws one.
        optional: where an environment or one of several MPIs cannot be had, leave its arms out and
            say so, instead of failing.
        variables: for every rank, beside those that say where HBM is.
        notes: for campaign.json, beside what is in all of them.
        site: the cluster, as sites.toml names it; "" where there is none.
        python: folder of an environment that the site provides for arms without a container; ""
            where these run in an environment of the project.
    """

    out: Path
    base: str = "auto"
    seed: int | None = None
    optional: bool = False
    variables: Mapping[str, str] = field(default_factory=dict)
    notes: Mapping[str, str] = field(default_factory=dict)
    site: str = ""
    python: str = ""


@dataclass(frozen=True)
class Campaign:
    """What is measured, in which order and with what.

    Attributes:
        id: of its own among all campaigns, as far as campaign.json is right.
        variables: for every rank.
        stored: campaign.json, for one that was begun before.
    """

    experiment: Experiment
    request: Request
    seed: int
    id: str
    variables: Mapping[str, str]
    stored: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def label(self) -> str:
        """Names and labels its containers. Its folder is in it: a file cannot name another's."""
        return f"{self.id}-{ownership.digest_of(self.request.out)}"

    @cached_property
    def blocks(self) -> tuple[Block, ...]:
        """The campaign's launches as they run: one seed, one schedule."""
        return schedule(self.experiment, self.seed)

    @property
    def launches(self) -> list[Launch]:
        """All launches, in their order."""
        return [launch for block in self.blocks for launch in block.launches]

    def unfinished(self) -> list[Launch]:
        """The launches that the results folder lacks."""
        finished = store.finished(self.request.out)
        return [launch for launch in self.launches if launch.name not in finished]

    def header(self, recorded: Mapping[str, Any]) -> dict[str, Any]:
        """campaign.json of a campaign that begins now.

        Args:
            recorded: what the arms run with.
        """
        return {
            "name": self.experiment.name,
            "id": self.id,
            "experiment": self.experiment.to_dict(),
            "seed": self.seed,
            "schedule": [
                {"block": block.number, "launches": [launch.name for launch in block.launches]}
                for block in self.blocks
            ],
            "base": self.request.base,
            "variables": dict(self.variables),
            "site": self.request.site,
            "python": self.request.python,
            **recorded,
            "machine": facts.machine(),
            "git": image.revision(),
            "command": [printable(word) for word in sys.argv],  # as readers take it
            "began": time.strftime("%Y-%m-%dT%H:%M:%SZ", time.gmtime()),
        }


def make(experiment: Experiment, request: Request) -> Campaign:
    """A campaign that begins now."""
    seed = random.SystemRandom().getrandbits(32) if request.seed is None else request.seed
    if experiment.factors.thresholds:
        ranks = experiment.launches.ranks[0]
        planned = trials(hbmcomm.tuning(ranks), _place(ranks))
        experiment = replace(experiment, factors=replace(experiment.factors, trials=planned))
    variables = _hbm_variables(experiment) | dict(request.variables)
    return Campaign(experiment, request, seed, f"{time.time_ns():x}", variables)


def _place(ranks: int) -> Place:
    """Where so many ranks are pinned."""
    topology = hbmcomm.topology()
    cpus = binding.cpus_by_node()
    used = {binding.cpu_of(rank, PACKED, cpus) for rank in range(ranks)}
    nodes = sum(1 for node in topology.nodes if used.intersection(node.cpus))
    caches = sum(1 for cache in topology.caches if cache.node is None and used & set(cache.cpus))
    return Place(ranks, nodes, max(1, caches))


def plan(experiment: Experiment, request: Request) -> Campaign:
    """A campaign that only shows its commands; its seed is 0 where none is given."""
    return replace(make(experiment, request), seed=request.seed or 0, id=DRY_RUN)


def read(out: Path, **again: str) -> Campaign:
    """The campaign of a results folder, as it was begun.

    Args:
        again: values of the flags AGAIN, which must be those that it was begun with.

    Raises:
        ResultsError: the folder holds none, or names what this version runs for nobody, or
            has other entries than plain files and folders.
        ExperimentsError: the folder is another user's.
        SpecError: this machine cannot measure it.
    """
    stored = store.read_header(out)
    ownership.refuse_others(out)
    _refuse_special_files(out)
    for key, harmless in AGAIN.items():
        _refuse_unconfirmed(out, key, stored.get(key, harmless[0]), again.get(key, ""))
    _refuse_unknown(out, stored["variables"])
    experiment = Experiment.from_dict(stored["experiment"], f"{out}/campaign.json")
    places = {key: stored[key] for key in AGAIN if key in stored}
    begun = Request(out, **places)
    name, variables = stored.get("id", ""), stored["variables"]
    return Campaign(experiment, begun, stored["seed"], name, variables, stored)


def _refuse_special_files(out: Path) -> None:
    """Refuse all but plain files and folders in a folder that is written into.

    Another user may have made it; a pipe would keep a writer waiting for ever.
    """
    for path in (*out.glob("*"), *out.glob("*/*")):
        mode = path.lstat().st_mode
        if not stat.S_ISREG(mode) and not stat.S_ISDIR(mode):
            what = "link" if stat.S_ISLNK(mode) else "pipe, a socket or a device"
            raise store.ResultsError(
                f"{path} is a {what}, which no campaign has: what is written there would go "
                "elsewhere; remove it"
            )


def _refuse_unconfirmed(out: Path, flag: str, begun: object, given: str) -> None:
    """Refuse what a campaign was begun with and the user does not ask for again."""
    usual = begun in AGAIN[flag] or (flag == "site" and begun == _only_site())
    if given == begun or (usual and not given):
        return
    if begun in AGAIN[flag]:
        raise store.ResultsError(
            f"--{flag} {given} was given, and {out} was begun without it; drop --{flag}"
        )
    raise store.ResultsError(
        f"{out} was begun with --{flag} {begun!r}, and a file alone does not choose what runs: if "
        f"that is yours, give it again: ./inv run --resume --out {out} --{flag} {begun!r}"
    )


def _only_site() -> str:
    """The site that is taken where none is named; "" where one must be."""
    try:
        return sites.load("", sites.path())[0]
    except ExperimentsError:
        return ""


def _refuse_unknown(out: Path, variables: object) -> None:
    """Refuse variables for ranks that no campaign of this checkout has."""
    if not isinstance(variables, Mapping):
        raise store.ResultsError(f"{out}/campaign.json: variables is not a table; {ELSEWHERE}")
    for name, value in variables.items():
        if name not in VARIABLES or not re.fullmatch(VARIABLES[name], str(value)):
            raise store.ResultsError(
                f"{out}/campaign.json gives every rank the variable {name!r} with {value!r}, which "
                f"no campaign of this checkout does; {ELSEWHERE}"
            )


def _hbm_variables(experiment: Experiment) -> dict[str, str]:
    """Where HBM is, as the user says, or emulated where that is wanted.

    What the user says is of this machine, and not for an emulated one.
    """
    if experiment.machine:
        described = description.load(experiment.machine)
        wanted = experiment.measurement.emulate_hbw and not described.found.hbm
        own = ",".join(str(node.id) for node in described.cpu_nodes)
        return {"MEMKIND_HBW_NODES": own} if wanted else {}
    given = {name: os.environ[name] for name in HBM_VARIABLES if os.environ.get(name)}
    topology = hbmcomm.topology()
    if experiment.measurement.emulate_hbw and not topology.hbm.nodes:
        nodes = [str(node.id) for node in topology.nodes if node.cpus and node.total_bytes]
        given["MEMKIND_HBW_NODES"] = ",".join(nodes)
    return given

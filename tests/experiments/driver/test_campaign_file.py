"""A resumed campaign runs what its user chose, not what a file names: it may be of anyone."""

import os
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from experiments.catalogue import spec
from experiments.cluster import sites
from experiments.driver import campaign_file
from experiments.driver.backends import Backends
from experiments.driver.commands import Commands
from experiments.environments.process import Container
from experiments.model.checkout import OTHER_BUILDS
from experiments.model.contender_names import OTHER_PACKAGE
from experiments.model.environment import DOCKER
from experiments.model.errors import ExperimentsError
from experiments.results import store
from experiments.results.store import ResultsError
from tests.refusals import refusal
from tests.second_user import SecondUser


@pytest.fixture
def out(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder for a campaign, on a machine with two sites."""
    tables = tmp_path / "sites.toml"
    tables.write_text("[knl]\n[xeon]\n")
    monkeypatch.setattr(sites, "path", lambda: tables)
    return tmp_path / "out"


def begin(out: Path, **header: Any) -> None:
    experiment = spec.restrict(spec.load("quick"), environments="host", blocks=1).to_dict()
    store.create(out, {"name": "q", "experiment": experiment, "seed": 1, "schedule": [], **header})


@pytest.mark.parametrize(
    ("flag", "begun"), [("python", "/theirs/env"), ("site", "knl"), ("base", "theirs/image:1")]
)
def test_what_chooses_programs_is_given_again(out: Path, flag: str, begun: str) -> None:
    begin(out, **{flag: begun})
    for given in ({}, {flag: "another"}):
        text = rf"begun with --{flag} '{begun}', and a file alone .*--resume --out {out} --{flag} "
        with pytest.raises(ResultsError, match=text):
            campaign_file.read(out, **given)
    read = campaign_file.read(out, **{flag: begun})
    assert getattr(read.request, flag) == begun


def test_the_usual_choices_are_not_given_again(out: Path) -> None:
    for base in ("auto", "bootstrap"):
        (out / "campaign.json").unlink(missing_ok=True)
        begin(out, base=base, python="", site="")
        assert campaign_file.read(out).request.base == base
        with pytest.raises(ResultsError, match=r"--python /own was given, .*drop --python"):
            campaign_file.read(out, python="/own")
    sites.path().write_text("[knl]")
    (out / "campaign.json").unlink()
    begin(out, site="knl")  # the one that is taken where none is named
    assert campaign_file.read(out).request.site == "knl"


def test_variables_that_no_campaign_gives_its_ranks_are_refused(tmp_path: Path) -> None:
    for number, variables in enumerate(
        [
            {"LD_PRELOAD": "/theirs/evil.so"},
            {"HBMCOMM_PYTHON": "/theirs/python"},
            {"MEMKIND_HBW_NODES": "1; sh"},
            {OTHER_PACKAGE: "/theirs/hbmcomm"},
            {OTHER_PACKAGE: f"{OTHER_BUILDS}/../hbmcomm"},
            ["LD_PRELOAD=/theirs/evil.so"],
        ]
    ):
        folder = tmp_path / str(number)
        begin(folder, variables=variables)
        answer = refusal(ResultsError, campaign_file.read, folder)
        assert re.search(r"variable.*measure again into another --out", answer), variables


def test_variables_of_a_campaign_are_taken(out: Path) -> None:
    variables = {"MEMKIND_HBW_NODES": "2,3", OTHER_PACKAGE: f"{OTHER_BUILDS}/0123abcd/hbmcomm"}
    begin(out, variables=variables)
    assert campaign_file.read(out).variables == variables


def test_a_folder_that_another_user_owns_or_writes_is_not_resumed(
    out: Path, second_user: SecondUser
) -> None:
    begin(out)
    out.chmod(0o777)
    with pytest.raises(ExperimentsError, match=f"chmod go-w {out}"):
        campaign_file.read(out)
    out.chmod(0o755)
    os.chown(out, second_user.uid, second_user.gid)
    with pytest.raises(ExperimentsError, match=f"belongs to user {second_user.uid}"):
        campaign_file.read(out)


def test_the_id_in_a_file_names_no_container_of_another_folder(out: Path, tmp_path: Path) -> None:
    """Containers are ended by their label and by their name."""
    ended = []
    for folder in (out, tmp_path / "theirs"):
        begin(folder, id="17f3")
        campaign = campaign_file.read(folder)
        launch = replace(campaign.launches[0], environment=DOCKER)
        made = Commands(campaign, Backends())(launch, folder)
        assert isinstance(made, Container)
        ended.append({made.options["name"], *made.options["labels"].values()})
    assert ended[0].isdisjoint(ended[1])
    again = campaign_file.read(out.parent / "theirs" / ".." / out.name)
    assert {again.label} < ended[0]  # of the same folder by another name


def test_a_folder_with_links_or_pipes_is_not_written_into(out: Path, tmp_path: Path) -> None:
    links = ("logs", "launches", "incoming", "logs/guard.log", "failed/0001-host.json")
    pipes = ("logs/0000-host.log", "logs", "incoming/pipe")
    places = [("link", name) for name in links] + [("pipe", name) for name in pipes]
    for number, (kind, name) in enumerate(places):
        folder = out / str(number)
        begin(folder)
        assert campaign_file.read(folder).seed == 1
        path = folder / name
        path.parent.mkdir(exist_ok=True)
        if path.is_dir():
            path.rmdir()
        if kind == "link":
            path.symlink_to(tmp_path)
        else:
            os.mkfifo(path)
        answer = refusal(ResultsError, campaign_file.read, folder)
        assert re.search(rf"{path} is a {kind}, .*; remove it", answer), name


def test_a_stored_command_is_text_that_readers_take(
    out: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sys.argv", ["invoke", "run", "--out", "a\x1b]0;owned\x07\udcff"])
    written = campaign_file.make(spec.load("tune"), campaign_file.Request(out)).header({})
    begin(out, command=written["command"])
    assert campaign_file.read(out).stored["command"][-1] == r"a\x1b]0;owned\x07\udcff"

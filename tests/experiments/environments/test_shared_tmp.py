"""Ranks take nothing from the machine's /tmp: no settings of an MPI, and no module of Python."""

import re
import shutil
from pathlib import Path

import pytest

from experiments.environments import runtime
from experiments.environments.process import FOLDER
from experiments.environments.profiles import Machine
from experiments.environments.userland import Userland
from experiments.model.environment import CONTAINERS, EnvironmentId
from experiments.processes.executables import captured
from tests.launched import LAUNCH

PROGRAMS = ("sh", "env", "ls")


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """A few programs of this machine as an image's files, with their libraries."""
    made = tmp_path / "tree"
    for name in ("dev", "proc", "sys", "tmp", FOLDER.strip("/")):
        (made / name).mkdir(parents=True)
    files = [Path(str(shutil.which(name))) for name in PROGRAMS]
    for file in tuple(files):
        needs = captured(["ldd", file])
        assert needs.returncode == 0, needs.stderr
        files += map(Path, re.findall(r"(/\S+) \(", needs.stdout))
    for file in set(files):
        copy = made / str(file).lstrip("/")
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy)
    return made


def test_userland_has_a_tmp_of_its_own(tree: Path, tmp_path: Path) -> None:
    machine = Machine("0", "0", (), 0, 0)
    made = Userland(tree, Path("/opt"), 2, machine).command(LAUNCH, tmp_path)
    before = made.argv[: made.argv.index("/opt/bin/mpiexec")]
    assert any(Path("/tmp").iterdir())
    words = [*before, "sh", "-c", "pwd; echo $HOME; ls -A /tmp $HOME"]
    variables = {"HBMCOMM_LAUNCH": "test", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin"}
    shown = captured(words, env=variables)
    assert (shown.stdout, shown.stderr) == ("/tmp\n/tmp\n/tmp:\n\n/tmp:\n", "")


def test_ranks_on_several_hosts_have_the_launchs_folder_where_tmp_is_the_machines() -> None:
    """Their /tmp has files of their launcher."""
    for name in CONTAINERS:
        contained = runtime.of(EnvironmentId(name)).contained
        assert contained, name
        words = contained(Path("/image"), Path("/opt")).words("name", 2, Path("/f"), {})
        text = " ".join((*words[0], *words[1], *words[2].values()))
        assert "/tmp" not in text, name
        assert re.search(rf"(workdir|pwd|cd|chdir)={FOLDER}( |$)", text), name

"""A campaign that was really measured, handed over as one file and read from that alone."""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Mapping
from pathlib import Path

import pytest
from jsonschema import Draft202012Validator

from experiments.results import local_names, unarchive
from tests.sharing import MadeOnce

ROOT = Path(__file__).parents[1]
SCHEMAS = ROOT / "docs" / "schemas"
pytestmark = pytest.mark.ranks


USER, HOST = "hbm-person", "hbm-machine"
NAMED = ["unshare", "--uts", "sh", "-c", f'hostname {HOST} && exec "$@"', "sh"]
"""What gives a program this name of its machine; root alone may."""


def invoke(
    *words: object,
    fails: bool = False,
    prefix: list[str] | None = None,
    env: Mapping[str, str] | None = None,
) -> str:
    """What a task prints; of one that fails, what it says of that."""
    command = [*(prefix or ()), sys.executable, "-m", "invoke", *map(str, words)]
    environment = os.environ | (env or {})
    done = subprocess.run(
        command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode == 1) == fails, done.stderr
    return done.stderr if fails else done.stdout


@pytest.fixture(scope="module")
def measured(made_once: MadeOnce) -> Path:
    """A campaign of the host and the host again, some seconds long; by a person of a name."""
    words = ["--experiment", "quick", "--env", "host", "--blocks", 1, "--sizes", "1KiB"]
    may = os.geteuid() == 0 and shutil.which("unshare") and shutil.which("hostname")
    prefix = NAMED if may and not subprocess.run([*NAMED, "true"], check=False).returncode else []

    def make(folder: Path) -> None:
        home = folder / "home-of-a-person"
        home.mkdir()
        env = {"HOME": str(home), "LOGNAME": USER, "USER": USER}
        invoke("run", *words, "--out", folder / "small", prefix=prefix, env=env)

    return made_once("measured", make) / "small"


@pytest.fixture(scope="module")
def archive(measured: Path, made_once: MadeOnce) -> Path:
    """The archive of the measured campaign."""

    def make(folder: Path) -> None:
        place = folder / "small.tar.xz"
        digest, name = invoke("archive", measured, "--out", place).split()
        assert Path(name) == place
        assert len(digest) == 64

    return made_once("archive", make) / "small.tar.xz"


def test_every_file_of_a_measured_campaign_fits_its_schema(measured: Path) -> None:
    files = {"campaign": ["campaign.json"], "environment": ["environment.json"]}
    files["launch"] = [f"launches/{path.name}" for path in measured.glob("launches/*.json")]
    assert len(files["launch"]) == 2
    for name, paths in files.items():
        check = Draft202012Validator(json.loads((SCHEMAS / f"{name}.schema.json").read_text()))
        for path in paths:
            check.validate(json.loads((measured / path).read_text()))


def test_what_it_ran_with_is_in_it(measured: Path) -> None:
    environment = json.loads((measured / "environment.json").read_text())
    assert "openmpi" in environment["mpis"]["openmpi"]
    assert "invoke" in environment["driver"]


def test_no_byte_of_an_archive_names_the_machine_that_measured(
    measured: Path, archive: Path
) -> None:
    made = json.loads((measured / ".names.json").read_text())
    named = {name for every in made.values() for name in every} - local_names.GENERIC
    assert {str(ROOT), USER, str(measured), str(measured.parent / "home-of-a-person")} <= named
    with tarfile.open(archive) as tar:
        files = {member.name: tar.extractfile(member) for member in tar}
        contents = {name: file.read() for name, file in files.items() if file}
    assert {Path(name).suffix for name in contents} >= {".npz", ".json", ".log", ".html", ".svg"}
    names = b"|".join(re.escape(name.encode()) for name in sorted(named))
    pattern = re.compile(rb"(?<![A-Za-z0-9])(?:" + names + rb")(?![\w-])")
    kept = {path: pattern.findall(content) for path, content in contents.items()}
    assert not any(kept.values()), kept
    launch = json.loads(contents["small/launches/0000-host.json"])
    assert launch["command"].endswith("-m experiments.programs.harness RESULTS/incoming/0000-host")


def test_the_report_of_an_archive_is_the_one_in_it(archive: Path, tmp_path: Path) -> None:
    page = Path(invoke("report", archive, "--out", tmp_path).strip())
    with unarchive.opened(archive) as folder:
        assert page.read_bytes() == (folder / "figures" / "report.html").read_bytes()


def test_a_damaged_archive_is_refused_by_its_name(archive: Path, tmp_path: Path) -> None:
    torn = tmp_path / "torn.tar.xz"
    torn.write_bytes(archive.read_bytes()[: archive.stat().st_size // 2])
    output = invoke("report", torn, "--out", tmp_path, fails=True)
    assert f"{torn} is damaged or no archive" in output
    assert "Traceback" not in output
    assert list(tmp_path.iterdir()) == [torn]

"""ReFrame itself runs the test of docs/reframe, over a real campaign of the host against itself."""

import json
import os
import shlex
import subprocess
import sys
import venv
from pathlib import Path
from typing import Any

import pytest

from experiments.model.checkout import ROOT
from tests.tiny_campaign import tiny

pytestmark = [*(pytest.mark.rare, pytest.mark.ranks, pytest.mark.alone), pytest.mark.timeout(1200)]

FOLDER = ROOT / "docs" / "reframe"
STRICT = """
import reframe as rfm
from container_cost import ContainerCost

@rfm.simple_test
class Strict(ContainerCost):
    reference = {"*": {"host-again_allreduce_mpi_65536_low": (0.01, None, 0.0, "ratio")}}
"""
CELLS = [
    f"host-again_allreduce_{transport}_{size}"
    for transport in ("direct", "mpi")
    for size in (1024, 65536)
]


@pytest.fixture(scope="module")
def reframe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ReFrame's command, in an environment of its own with the pinned versions."""
    place = tmp_path_factory.mktemp("reframe") / "venv"
    venv.create(place)
    pip = [sys.executable, "-P", "-m", "pip", "--python", str(place / "bin" / "python")]
    words = ["install", "-q", "--constraint", "constraints.txt", "--group", "reframe"]
    done = subprocess.run([*pip, *words], cwd=ROOT, capture_output=True, text=True, check=False)
    if "No matching distribution found" in done.stderr:
        pytest.skip("no package registry gave reframe-hpc")
    assert done.returncode == 0, done.stderr
    return place / "bin" / "reframe"


def run(
    reframe: Path, folder: Path, *words: str, blocks: int = 6
) -> tuple[int, dict[str, dict[str, Any]]]:
    """ReFrame's exit code, and its report of each test.

    Args:
        folder: takes whatever ReFrame writes.
        words: of the command, after the test and the campaign.
    """
    experiment = folder / "tiny.toml"
    launches = {"aa_pair": True, "blocks": blocks}
    experiment.write_text(tiny(factors={"sizes": "1KiB,64KiB"}, launches=launches))
    # ranks' sockets have short paths, so the campaign keeps the usual folder for temporary files
    inv = ["env", "-u", "TMPDIR", sys.executable, "-P", "-m", "invoke", "--search-root", str(ROOT)]
    settings = {
        "inv": shlex.join(inv),
        "experiment": str(experiment),
        "flags": "--env host",
        "arms": "host-again",
    }
    report = folder / "report.json"
    paths = filter(None, (str(FOLDER), os.environ.get("PYTHONPATH")))
    done = subprocess.run(
        [
            *(str(reframe), "--prefix", str(folder), "--report-file", str(report), "-r"),
            *("--exec-policy", "serial", "-c", str(FOLDER / "container_cost.py")),
            *(part for key, value in settings.items() for part in ("-S", f"{key}={value}")),
            *words,
        ],
        env=os.environ
        | {"HOME": str(folder), "TMPDIR": str(folder), "PYTHONPATH": os.pathsep.join(paths)},
        cwd=folder,
        capture_output=True,
        text=True,
        check=False,
    )
    assert report.is_file(), done.stdout + done.stderr
    (session,) = json.loads(report.read_text())["runs"]
    return done.returncode, {test["name"]: test for test in session["testcases"]}


def test_a_wide_bound_is_met_and_an_impossible_one_is_not(reframe: Path, tmp_path: Path) -> None:
    (tmp_path / "strict.py").write_text(STRICT)
    code, tests = run(reframe, tmp_path, "-c", str(tmp_path / "strict.py"), "-S", "limit=100")
    assert code == 1
    assert set(tests) == {"ContainerCost", "Strict"}
    passed, failed = tests["ContainerCost"], tests["Strict"]
    assert passed["result"] == "pass", passed["fail_reason"]
    assert failed["result"] == "fail"
    assert failed["fail_phase"] == "performance"
    assert (
        "failed to meet reference(s): host-again_allreduce_mpi_65536_low" in (failed["fail_reason"])
    )
    for test in tests.values():
        values = {key.split(":")[-1]: value for key, value in test["perfvalues"].items()}
        assert sorted(values) == sorted(
            f"{cell}{end}" for cell in CELLS for end in ("", "_low", "_high")
        )
        assert {value[4] for value in values.values()} == {"ratio"}
        for cell in CELLS:
            low, middle, high = (values[cell + end][0] for end in ("_low", "", "_high"))
            assert 0.01 < low <= middle <= high < 100
    bounded = {key.split(":")[-1]: value[1:4] for key, value in passed["perfvalues"].items()}
    for cell in CELLS:
        assert bounded[f"{cell}_low"] == [1.0, None, 100.0]
        assert bounded[f"{cell}_high"] == bounded[cell] == [0, None, None]
    (kept,) = (tmp_path / "output").rglob("ContainerCost/campaign")
    assert (kept / "campaign.json").is_file()


def test_what_was_not_measured_fails(reframe: Path, tmp_path: Path) -> None:
    for words, why in (
        (("-S", "arms=host-again"), "a ratio has no interval; measure 6 blocks or more"),
        (("-S", "arms=host-again,docker-tuned-one"), "not measured: ['docker-tuned-one']"),
        (("-S", "experiment=nowhere"), "no campaign: see rfm_job.err"),
        (("-S", "limit=-1"), "limit is -1.0; set it to 0 or more"),
        (("-S", "bounded=middle"), "bounded is 'middle'; set it to low or high"),
    ):
        code, tests = run(reframe, tmp_path, *words, blocks=1)
        assert code == 1
        assert tests["ContainerCost"]["result"] == "fail"
        assert why in tests["ContainerCost"]["fail_reason"]

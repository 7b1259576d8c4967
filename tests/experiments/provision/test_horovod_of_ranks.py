"""Horovod for the ranks of an MPI: left out with a reason, or named where pip has none."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from experiments.model.errors import Missing
from experiments.model.workloads import HOROVOD_FOLDER
from experiments.provision import horovod_of_ranks, mpi_wheels

FLAVOUR = next(each for each in MPIS if mpi_wheels.prefix(each) != Path(sys.prefix))


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A checkout with an empty environment of FLAVOUR."""
    made = tmp_path_factory.mktemp("checkout")
    (made / "constraints.txt").write_text("horovod==0.28.1\n")
    subprocess.run([sys.executable, "-m", "venv", mpi_wheels.prefix(FLAVOUR, made)], check=True)
    return made


@pytest.mark.rare
def test_an_mpi_without_a_compiler_goes_without(root: Path) -> None:
    lines: list[str] = []
    horovod_of_ranks.ensure(FLAVOUR, lines.append, root)
    assert len(lines) == 1 and lines[0].startswith(f"horovod is left out for {FLAVOUR}: ")


@pytest.mark.rare
def test_a_source_that_pip_cannot_have_is_named_with_what_to_do(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setattr(horovod_of_ranks, "_lack", lambda prefix: "")
    with pytest.raises(Missing, match="horovod cannot be had: fetching its source failed"):
        horovod_of_ranks.ensure(FLAVOUR, lambda line: None, root)
    assert not (mpi_wheels.prefix(FLAVOUR, root) / HOROVOD_FOLDER).exists()


@pytest.mark.rare
def test_what_is_there_stays(root: Path) -> None:
    built, lines = mpi_wheels.prefix(FLAVOUR, root) / HOROVOD_FOLDER, []
    built.mkdir()
    horovod_of_ranks.ensure(FLAVOUR, lines.append, root)
    built.rmdir()
    assert lines == []


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("set(CMAKE_CXX_STANDARD 14)", "set(CMAKE_CXX_STANDARD 17)"),
        ("set(CMAKE_CXX_STANDARD 11)", "set(CMAKE_CXX_STANDARD 17)"),
        ("set(CMAKE_CXX_STANDARD_REQUIRED ON)", "set(CMAKE_CXX_STANDARD_REQUIRED ON)"),
    ],
)
def test_only_the_standard_of_its_language_is_changed(text: str, found: str) -> None:
    assert re.sub(*horovod_of_ranks.STANDARD, text) == found


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("  if (last) {\n    manager.EnvFinalize();\n  }", "\n}\n\nvoid Next() {"),
        ("  local_ctx.reset();\n  reset_ = true;", "\n}\n"),
    ],
)
def test_what_is_shut_down_is_no_longer_enabled(before: str, after: str) -> None:
    found = re.sub(*horovod_of_ranks.DISABLED, before + after)
    assert found == f"{before}\n  enabled_ = false;{after}"


def test_a_setting_that_is_fixed_is_left_alone() -> None:
    text = "  } else {\n    Eigen::VectorXd v = TunableParameter::BestValue();\n"
    assert re.sub(*horovod_of_ranks.AGAIN, text) == (
        "  } else if (fixed_values_.find(variable) == fixed_values_.end()) {\n"
        "    Eigen::VectorXd v = TunableParameter::BestValue();\n"
    )

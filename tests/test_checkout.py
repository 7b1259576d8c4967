"""The suite runs from a checkout, and says so in one line where it is not in one."""

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def run(folder: Path, module: str) -> str:
    """What a module of a copied suite says; no environment helps it to find the checkout."""
    command = [sys.executable, "-E", "-S", "-m", module]
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    return done.stderr


@pytest.fixture
def copy(tmp_path: Path) -> Path:
    """A folder with a copy of both packages, and nothing else of the checkout."""
    for package in ("experiments", "plots"):
        (tmp_path / package).mkdir()
        shutil.copy(ROOT / package / "__init__.py", tmp_path / package)
    programs = tmp_path / "experiments" / "programs"
    programs.mkdir()
    (programs / "__init__.py").touch()
    (programs / "harness.py").write_text("import no_such_module_of_hbmcomm")
    (tmp_path / "plots" / "draw.py").write_text("import experiments.programs.harness")
    return tmp_path


@pytest.mark.parametrize("module", ["experiments.programs.harness", "plots.draw"])
def test_copied_packages_ask_for_a_checkout(copy: Path, module: str) -> None:
    output = run(copy, module)
    assert f"experiments runs from a checkout of hbmcomm only, and {copy} is none" in output
    assert "run ./inv in a checkout" in output


def test_the_project_of_somebody_else_is_no_checkout(copy: Path) -> None:
    (copy / "pyproject.toml").write_text('[project]\nname = "other"\n')
    output = run(copy, "experiments.programs.harness")
    assert output.count("\n") == 1
    assert "it has no pyproject.toml of hbmcomm" in output


def test_plots_alone_ask_for_a_checkout(copy: Path) -> None:
    shutil.rmtree(copy / "experiments")
    output = run(copy, "plots.draw")
    assert output.count("\n") == 1
    assert "plots runs from a checkout of hbmcomm only" in output


def test_beside_the_projects_own_file_the_suite_runs(copy: Path) -> None:
    shutil.copy(ROOT / "pyproject.toml", copy)
    for module in ("experiments.programs.harness", "plots.draw"):
        assert "No module named 'no_such_module_of_hbmcomm'" in run(copy, module)

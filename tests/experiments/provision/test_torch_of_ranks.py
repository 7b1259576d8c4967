"""torch for the ranks of an MPI: installed where it is missing, and named where pip has none."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from experiments.model.errors import Missing
from experiments.provision import mpi_wheels, torch_of_ranks


@pytest.mark.rare
def test_a_torch_that_pip_cannot_have_is_named_with_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", str(tmp_path))
    (tmp_path / "constraints.txt").write_text("torch==2.13.0+cpu\n")
    flavour = next(each for each in MPIS if mpi_wheels.prefix(each) != Path(sys.prefix))
    subprocess.run([sys.executable, "-m", "venv", mpi_wheels.prefix(flavour, tmp_path)], check=True)
    lines: list[str] = []
    with pytest.raises(Missing, match="PIP_FIND_LINKS") as caught:
        torch_of_ranks.ensure(flavour, lines.append, tmp_path)
    assert f"torch cannot be installed for {flavour}" in str(caught.value)
    assert lines == [f"torch: installing grpcio and ninja and protobuf and torch for {flavour}"]


def test_a_torch_that_is_there_stays_and_without_a_compiler_a_line_says_what_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pytest.importorskip("torch", reason="torch is not installed: pip install torch ninja")
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path))
    monkeypatch.setenv("CXX", "no-such-compiler")
    flavour = next(each for each in MPIS if mpi_wheels.prefix(each) == Path(sys.prefix))
    lines: list[str] = []
    torch_of_ranks.ensure(flavour, lines.append)
    assert lines[0].startswith("torch: compiling hbmcomm.torch")
    assert lines[1].startswith(f"torch is left out for {flavour}: hbmcomm.torch: ")
    assert "no-such-compiler" in lines[1] and len(lines) == 2

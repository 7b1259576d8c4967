"""`python -m hbmcomm` runs an unchanged program over a Communicator, and ends as it does."""

import subprocess
import sys
from pathlib import Path

import pytest

from experiments.model.environment import MPIS
from hbmcomm.__main__ import main
from tests.starting import Start

PROGRAM = Path(__file__).parent / "ranks" / "unchanged.py"
TELL = """
from mpi4py import MPI
import hbmcomm, numpy, sys
sys.stdout.write(f"{MPI.COMM_WORLD!r}, arrays in {hbmcomm.source(numpy.ones(9000))}\\n")
"""
ONE_LEAVES = """
from mpi4py import MPI
import sys, time
if MPI.COMM_WORLD.rank == 1:
    {leave}
time.sleep(100)
"""
of_every_mpi = pytest.mark.parametrize("mpi", MPIS)


@pytest.mark.ranks
@pytest.mark.parametrize(
    ("runner", "mpi"), [("mpi4py", "openmpi"), *(("hbmcomm", mpi) for mpi in MPIS)]
)
def test_a_program_that_knows_mpi4py_alone_gets_what_mpi_promises(
    mpirun: Start, mpi: str, runner: str
) -> None:
    """It ends by sys.exit(0) on each rank."""
    done = mpirun(runner, 2, str(PROGRAM), "--kind", "of mine", "-m", mpi=mpi)
    module = "hbmcomm" if runner == "hbmcomm" else "mpi4py.MPI"
    assert done.output.count(f"kept {module}\n") == 2


@pytest.mark.ranks
def test_options_before_the_program_choose_the_communicator(mpirun: Start) -> None:
    chosen = ("--transport", "mpi", "--kind", "hbw")
    done = mpirun("hbmcomm", 2, *chosen, "-c", TELL, env={"MEMKIND_HBW_NODES": "0"})
    for rank in range(2):
        assert f"<Communicator: rank {rank} of 2, transport mpi, kind hbw" in done.output


@pytest.mark.ranks
def test_a_module_is_run_as_python_runs_it(mpirun: Start, tmp_path: Path) -> None:
    (tmp_path / "within").mkdir()
    body = f"{TELL}assert (__name__, sys.argv[1:]) == ('__main__', ['-c', '--kind'])\n"
    (tmp_path / "within" / "program.py").write_text(body, encoding="ascii")
    words = ("-m", "within.program", "-c", "--kind")
    done = mpirun("hbmcomm", 2, *words, env={"PYTHONPATH": str(tmp_path)})
    assert done.output.count("transport direct") == done.output.count("arrays in None") == 2


@pytest.mark.ranks
def test_numpy_arrays_of_a_program_are_in_the_arena_where_asked_for(mpirun: Start) -> None:
    assert mpirun("hbmcomm", 2, "--numpy-memory", "-c", TELL).output.count("in arena") == 2


@pytest.mark.ranks
@of_every_mpi
def test_a_rank_that_ends_by_an_exception_ends_the_job(mpirun: Start, mpi: str) -> None:
    code = ONE_LEAVES.format(leave="raise LookupError('of rank 1')")
    done = mpirun("hbmcomm", 2, "-c", code, mpi=mpi, code=None, timeout=60.0)
    assert done.code != 0
    assert "LookupError: of rank 1" in done.output


@pytest.mark.ranks
@of_every_mpi
def test_an_exit_code_of_one_rank_is_the_jobs(mpirun: Start, mpi: str) -> None:
    code = ONE_LEAVES.format(leave="sys.exit(7)")
    assert mpirun("hbmcomm", 2, "-c", code, mpi=mpi, code=None, timeout=60.0).code == 7


@pytest.mark.ranks
def test_what_the_machine_lacks_is_one_line_of_rank_0(mpirun: Start) -> None:
    for options, text in (
        (("--transport", "pigeon"), "unknown transport 'pigeon'; known: auto, direct"),
        (("--kind", "dax_kmem"), "dax_kmem"),
    ):
        done = mpirun("hbmcomm", 2, *options, "-c", TELL, code=1)
        assert done.output.count(text) == 1, done.output
        assert done.output.count("hbmcomm: ") == 1
        assert "Traceback" not in done.output


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ((), "no program; give a Python file, or -m and a module"),
        (("",), "no program; give a Python file, or -m and a module"),  # as of an unset "$PROGRAM"
        (("-m",), "-m needs the module to run"),
        (("-c",), "-c needs the code to run"),
        (("nowhere.py",), "no file 'nowhere.py' in "),
        (("--pigeon",), "unrecognized arguments"),
    ],
)
def test_a_wrong_command_line_says_what_to_give(
    words: tuple[str, ...], text: str, capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    message = capsys.readouterr().err
    assert ended.value.code == 2
    assert text in message
    assert "usage: python -m hbmcomm [options] (PROGRAM | -m MODULE" in message


def test_a_program_is_looked_for_where_the_folder_is_gone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    tmp_path.rmdir()
    with pytest.raises(SystemExit):
        main(("nowhere.py",))
    assert "no file 'nowhere.py' in the current folder, which has been" in capsys.readouterr().err


def test_help_has_a_line_to_copy_and_starts_no_mpi() -> None:
    code = "import runpy, sys; sys.argv = ['hbmcomm', '--help']\n"
    code += "try: runpy.run_module('hbmcomm', run_name='__main__')\n"
    code += "finally: assert 'mpi4py.MPI' not in sys.modules"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "mpiexec -n 4 python -m hbmcomm program.py" in done.stdout
    assert "mpiexec -n 4 python -m mpi4py program.py" in done.stdout
    assert max(map(len, done.stdout.splitlines())) <= 100

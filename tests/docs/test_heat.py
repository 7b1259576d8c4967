"""The example of heat conduction: all its forms compute the same plate, and say what they cost."""

import importlib.util
import re
from pathlib import Path
from types import ModuleType

import pytest

from tests.starting import Start

ROOT = Path(__file__).parents[2]
PROGRAM = ROOT / "docs/examples/heat.py"
PAGE = ROOT / "docs/library.md"
SHORT = ("--steps", "3", "--slices", "2")
LATER = ("--steps", "20", "--slices", "7")
"""The median slice is not the first, in which memory is touched for the first time."""
ALWAYS_FAULTS = {"MALLOC_TRIM_THRESHOLD_": "131072", "MALLOC_MMAP_THRESHOLD_": "131072"}
"""Both defaults of glibc, which no longer adapts them once they are set."""


@pytest.fixture(scope="module")
def heat() -> ModuleType:
    spec = importlib.util.spec_from_file_location("heat", PROGRAM)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def reports(output: str) -> dict[str, tuple[float, str]]:
    """{form: (page faults a step, checksum and residual)}."""
    line = re.compile(r"^(\w+) .* ([\d.]+) faults, \d+ slices, ([\da-f]{8} \S+)$", re.MULTILINE)
    return {form: (float(faults), plate) for form, faults, plate in line.findall(output)}


@pytest.mark.ranks
def test_all_forms_compute_the_plate_of_one_rank(mpirun: Start, heat: ModuleType) -> None:
    words = (*SHORT, "--size", "66", "--forms", ",".join(heat.FORMS))
    alone, two, three = (reports(mpirun(PROGRAM, n, *words).output) for n in (1, 2, 3))
    assert list(alone) == list(two) == list(three) == list(heat.FORMS)
    assert len({plate for ran in (alone, two, three) for _, plate in ran.values()}) == 1


@pytest.mark.ranks
def test_numpy_memory_out_and_an_option_take_the_page_faults_away(mpirun: Start) -> None:
    forms = ("--forms", "mpi4py,plan,numpy_memory,mpi4py_out")
    by_form = reports(mpirun(PROGRAM, 2, *LATER, *forms, env=ALWAYS_FAULTS).output)
    faults = {form: count for form, (count, _) in by_form.items()}
    assert min(faults["mpi4py"], faults["plan"]) > 100
    assert max(faults["numpy_memory"], faults["mpi4py_out"]) < 5
    words = ("--numpy-memory", str(PROGRAM), *LATER)  # the program is unchanged
    unchanged = reports(mpirun("hbmcomm", 2, *words, env=ALWAYS_FAULTS).output)
    assert unchanged.keys() == {"mpi4py"} and unchanged["mpi4py"][0] < 5
    assert unchanged["mpi4py"][1] == by_form["mpi4py"][1]


@pytest.mark.ranks
def test_the_settings_of_the_page_take_the_page_faults_away(mpirun: Start) -> None:
    page = PAGE.read_text(encoding="utf-8")
    settings = dict(re.findall(r"^export (MALLOC_\w+)=(\d+)$", page, re.MULTILINE))
    assert len(settings) == 2
    ran = mpirun(PROGRAM, 2, *LATER, env=settings).output
    ((faults, _),) = reports(ran).values()
    assert faults < 5


def test_the_pages_commands_can_be_run(heat: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each command of the page and of the program itself gets as far as the first plate."""

    class Began(Exception):
        pass

    def begin(form: str, size: int, every: int) -> None:
        raise Began

    monkeypatch.setattr(heat, "Plate", begin)
    text = PAGE.read_text(encoding="utf-8") + (heat.__doc__ or "")
    (forms,) = re.findall(r"^FORMS=(\S+)$", text, re.MULTILINE)
    assert forms.split(",") == list(heat.FORMS)
    text = text.replace("$FORMS", forms)
    commands = re.findall(r"heat\.py((?: +[^\s`]+)*)$", text, re.MULTILINE)
    assert len(commands) == 6
    for command in commands:
        monkeypatch.setattr("sys.argv", ["heat.py", *command.split()])
        with pytest.raises(Began):
            heat.main()


@pytest.mark.ranks
def test_a_wrong_command_line_is_one_clear_error(
    mpirun: Start,
    heat: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    expected = "--size 65: 2 ranks cannot have as many rows each"
    assert expected in mpirun(PROGRAM, 2, "--size", "65", code=1).output
    for words, expected in (
        ("--forms plan,plan", "'plan': give some of mpi4py"),
        ("--slices 1", "'1': give a whole number of 2 or more"),
    ):
        monkeypatch.setattr("sys.argv", ["heat.py", *words.split()])
        with pytest.raises(SystemExit, match="2"):
            heat.main()
        assert expected in capsys.readouterr().err

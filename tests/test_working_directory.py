"""Python, where this project starts it, imports nothing from the folder that it is started in.

That may be /tmp, where any user writes. Without -P, `python -m` and `python -c` import from there
before they import from anywhere else.
"""

import ast
import itertools
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.environments.process import MODULE
from experiments.provision import site_python

ROOT = Path(__file__).parents[1]
SOURCES = ("hbmcomm", "experiments", "plots", "commands")
REASONS = {
    "experiments/driver/watchdog.py": "it is started in the checkout",
    "experiments/provision/test_runner.py": "it is started in the checkout, and finds tests there",
}
"""Why a file may start Python without -P."""
PLANTED = "print('another user was here')"


def starts(source: str) -> Iterator[str]:
    """The words of a source that start a module or code without -P."""
    for node in ast.walk(ast.parse(source)):
        for program, flag in itertools.pairwise(getattr(node, "elts", ())):
            if isinstance(flag, ast.Constant) and flag.value in ("-m", "-c"):
                words = ast.unparse(program)
                if "python" in words or "sys.executable" in words:
                    yield f"{words} {flag.value}"


def test_modules_are_started_with_p() -> None:
    paths = [path for storey in SOURCES for path in (ROOT / storey).rglob("*.py")]
    by_file = {str(path.relative_to(ROOT)): [*starts(path.read_text("utf-8"))] for path in paths}
    probe = "experiments/provision/site_python.py"  # whose Python is any: it has PYTHONSAFEPATH
    assert {name for name, words in by_file.items() if words} == {*REASONS, probe}


@pytest.mark.parametrize(
    ("source", "number"),
    [
        ('[sys.executable, "-m", "pip"]', 1),
        ('f(str(prefix / "bin/python"), "-m", "a")', 0),
        ('(str(prefix / "bin/python"), "-m", "a")', 1),
        ('[*words, f"{prefix}/bin/python", "-c", "a"]', 1),
        ('[sys.executable, "-P", "-m", "pip"]', 0),
        ('["mkfs", "-m", "0"]', 0),
    ],
)
def test_words_without_it_are_found(source: str, number: int) -> None:
    assert len([*starts(source)]) == number


def test_inv_starts_python_with_p() -> None:
    starts = re.findall(r'"\$(?:python|base|1)" (.*?-[cm] \S+)', (ROOT / "inv").read_text())
    assert len(starts) > 5
    wrong = [start for start in starts if not start.startswith("-P ")]
    assert wrong == ["-m pip", "-c 'import"]  # within the checkout; sys, which is built in


def test_the_harness_imports_nothing_from_the_folder_of_its_start(tmp_path: Path) -> None:
    for name in ("experiments", "mpi4py"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").write_text(PLANTED)
    done = subprocess.run(
        [sys.executable, *MODULE], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert done.stdout == "" and "usage: mpiexec" in done.stderr


def test_the_question_to_a_sites_python_imports_nothing_from_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "json.py").write_text(f"import sys; sys.exit({PLANTED[6:-1]})")
    monkeypatch.chdir(tmp_path)
    assert site_python.ask(Path(sys.prefix)).flavour

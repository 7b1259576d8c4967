"""No code of the project runs bytes that somebody else may have written."""

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCES = ("hbmcomm", "experiments", "plots", "commands")

MODULES = {
    *("pickle", "_pickle", "cloudpickle", "dill", "joblib", "shelve", "marshal"),
    *("multiprocessing.connection", "multiprocessing.managers"),
}
"""Modules that turn bytes into objects, or that do it for whoever connects."""
CALLS = ("eval", "exec", "yaml.load")
LOADERS = ("torch.load", "torch.jit.load")

REASONS = {
    (
        "experiments/baselines/processes.py",
        "multiprocessing.connection",
    ): "its wait() alone: for the ends of children that it has started",
}
"""(file, what it uses): why no one else's bytes come there."""


def name_of(node: ast.expr) -> str:
    """torch.load of that call; "" of what is no name."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def literal(call: ast.Call, keyword: str) -> object:
    """The value that a call gives to an argument; None where it gives none, or computes it."""
    found = [each.value for each in call.keywords if each.arg == keyword]
    return found[0].value if found and isinstance(found[0], ast.Constant) else None


def hazards(source: str) -> Iterator[str]:
    """What a source uses that can run bytes which it reads."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from MODULES & {each.name for each in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from MODULES & {module, *(f"{module}.{each.name}" for each in node.names)}
        elif isinstance(node, ast.Call):
            name, given = name_of(node.func), {each.arg for each in node.keywords}
            unpickles = "allow_pickle" in given and literal(node, "allow_pickle") is not False
            trusts = name in LOADERS and literal(node, "weights_only") is not True
            if name in CALLS or name.endswith(".read_pickle") or unpickles or trusts:
                yield name


def uses() -> set[tuple[str, str]]:
    paths = [
        *ROOT.glob("*.py"),
        *(each for name in SOURCES for each in (ROOT / name).rglob("*.py")),
    ]
    return {
        (str(path.relative_to(ROOT)), hazard)
        for path in paths
        for hazard in hazards(path.read_text(encoding="utf-8"))
    }


def test_nothing_unpickles_or_evaluates_but_for_a_reason() -> None:
    assert uses() == set(REASONS)


@pytest.mark.parametrize(
    "source",
    [
        "import pickle",
        "import pickle as p; p.loads(b'')",
        "from pickle import loads",
        "from multiprocessing import connection",
        "import marshal",
        "import shelve",
        "def f(text): return eval(text)",
        "exec(open('x').read())",
        "numpy.load(path, allow_pickle=True)",
        "np.load(path, allow_pickle=asked)",
        "torch.load(path)",
        "torch.load(path, weights_only=False)",
        "pandas.read_pickle(path)",
    ],
)
def test_a_use_is_seen(source: str) -> None:
    assert list(hazards(source))


@pytest.mark.parametrize(
    "source",
    [
        "np.load(path, allow_pickle=False)",
        "np.load(path)",
        "torch.load(path, weights_only=True)",
        "json.loads(text)",
        "re.compile(pattern)",
        "model.eval()",
    ],
)
def test_what_runs_no_bytes_is_no_use(source: str) -> None:
    assert not list(hazards(source))

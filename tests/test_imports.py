"""Imports go one way, tasks -> commands -> plots -> experiments -> hbmcomm, never in a circle."""

import ast
import re
import subprocess
import sys
import tomllib
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
STOREYS = ("hbmcomm", "experiments", "plots", "commands", "tasks", "setup")
"""Each may import those before it."""
ORDER = {
    "hbmcomm": "ending errors quantities typed_json authentication compiled_shims _native memory "
    "transports hierarchical options allocation sharing derived communicator watching torch "
    "training costmodel __main__",
    "experiments": "model catalogue console processes schedule environments machine measure "
    "implementations programs baselines results analysis cluster provision jobs emulation doctor "
    "driver",
    "plots": "layout text tables figures contents draw html site reproduce documentation",
    "commands": "exits flags folders programs stored models clusters campaigns emulation "
    "project bench run",
}
"""The folders and files of each storey: each may import those before it."""
FACES = ("hbmcomm.authentication", "hbmcomm.costmodel", "hbmcomm.training.networks")
"""Public names of the library that are not in its own face."""
CLIENTS = ("hbmcomm.training.", "hbmcomm.costmodel.")
"""Parts of the library that use it as any program does."""
ARITHMETIC = ("hbmcomm.training.parameter_server.kernels", "hbmcomm._native")
"""The one module of a client that reaches the binary, for functions of its own in there."""
RANK_PROGRAMS = (
    "experiments.programs.harness",
    "experiments.programs.on_a_node",
    "experiments.baselines.run",
    "experiments.programs.imb_run",
    "experiments.programs.imb_probe",
    "experiments.implementations.daso_seeds",
)
"""What mpiexec starts; the image has numpy, mpi4py and cffi alone."""


def name(path: Path) -> str:
    return ".".join(path.relative_to(ROOT).with_suffix("").parts).removesuffix(".__init__")


@cache
def modules() -> dict[str, Path]:
    paths = list(ROOT.glob("*.py"))
    for storey in STOREYS[:-2]:
        paths += (ROOT / storey).rglob("*.py")
    return {name(path): path for path in paths}


@cache
def imports() -> dict[str, set[str]]:
    """{module: modules of the project that it imports}, those within functions included."""
    return {module: _imported(path) - {module} for module, path in modules().items()}


def _imported(path: Path) -> set[str]:
    imported: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            assert node.module and not node.level, f"{path}:{node.lineno}: a relative import"
            whole = {f"{node.module}.{alias.name}" for alias in node.names}
            imported |= whole & modules().keys() or {node.module}
    return imported & modules().keys()


def storey(module: str) -> str:
    return module.partition(".")[0]


def room(module: str) -> str:
    """The folder of a module; a file at the root of its storey is a room of its own."""
    path = modules()[module].relative_to(ROOT)
    return ".".join(path.parts[:-1]) if len(path.parts) > 2 else module


def floor(module: str, storey: str) -> str:
    """The folder or file of a module right below a storey; "" of a module elsewhere."""
    return (room(module) + ".").removeprefix(storey + ".").partition(".")[0]


def circle(graph: dict[str, set[str]]) -> list[str]:
    """One circle in a graph; empty where there is none."""
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_no_storey_imports_one_above_it() -> None:
    upward = [
        f"{module} imports {other}"
        for module, others in imports().items()
        for other in others
        if STOREYS.index(storey(other)) > STOREYS.index(storey(module))
    ]
    assert upward == []


def test_the_library_is_reached_by_its_public_names_and_never_by_the_plots() -> None:
    reached = {
        (storey(module), other)
        for module, others in imports().items()
        for other in others
        if storey(other) == "hbmcomm" != storey(module)
    }
    faces = {("experiments", "hbmcomm"), ("commands", "hbmcomm")}
    assert faces <= reached <= faces | {("experiments", face) for face in FACES}


def test_clients_in_the_library_use_its_public_names_alone() -> None:
    clients = {module for module in modules() if f"{module}.".startswith(CLIENTS)}
    assert len(clients) > 25
    reached = {
        (module, other)
        for module in clients
        for other in imports()[module] - clients
        if other != "hbmcomm"
    }
    assert reached == {ARITHMETIC}
    trees = [ast.parse(modules()[module].read_text(encoding="utf-8")) for module in clients]
    nodes = [node for tree in trees for node in ast.walk(tree)]
    attributes = [node for node in nodes if isinstance(node, ast.Attribute)]
    read = {node.attr for node in attributes if re.match("_[a-z]|hbm_|HBM_", node.attr)}
    own = {node.attr for node in attributes if isinstance(node.ctx, ast.Store)}
    own |= {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
    assert read - own == {"_asdict", "_fields", "_replace"}, "private names of another part"


def test_no_modules_import_each_other_in_a_circle() -> None:
    assert len(imports()) > 100
    assert circle(imports()) == []


def test_no_rooms_import_each_other_in_a_circle() -> None:
    rooms: dict[str, set[str]] = {}
    for module, others in imports().items():
        rooms.setdefault(room(module), set()).update(map(room, others))
    graph = {one: others - {one} for one, others in rooms.items()}
    assert {"experiments.emulation", "tasks"} <= graph.keys()
    assert circle(graph) == []


@pytest.mark.parametrize("storey", ORDER)
def test_rooms_and_root_files_import_those_before_them_alone(storey: str) -> None:
    floors = ORDER[storey].split()
    upward = [
        f"{module} imports {other}"
        for module, others in imports().items()
        for other in others
        if (one := floor(module, storey)) in floors and (two := floor(other, storey)) in floors
        if floors.index(two) > floors.index(one)
    ]
    assert upward == []
    parts = {floor(module, storey) for module in modules() if module.startswith(f"{storey}.")}
    assert parts == set(floors)


def test_ranks_import_no_package_of_the_driver() -> None:
    reached, waiting = set[str](), set(RANK_PROGRAMS)
    while waiting:
        reached |= waiting
        waiting = set().union(*(imports()[module] for module in waiting)) - reached
    groups = tomllib.loads((ROOT / "pyproject.toml").read_text())["dependency-groups"]
    driver = {re.split(r"[>=\[]", package)[0] for package in groups["driver"]}
    assert {"pydantic", "pandas"} <= driver and len(reached) > 40
    violations = {
        (module, package) for module in reached for package in _packages(modules()[module]) & driver
    }
    assert violations == set()


def _packages(path: Path) -> set[str]:
    """The top names of everything that a file imports."""
    nodes = list(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))
    whole = [alias.name for node in nodes if isinstance(node, ast.Import) for alias in node.names]
    parts = [node.module or "" for node in nodes if isinstance(node, ast.ImportFrom)]
    return {module.partition(".")[0] for module in whole + parts}


def test_what_shows_a_stored_campaign_starts_no_program() -> None:
    """A results folder may come from anyone, and names programs."""
    starting = {"subprocess", "multiprocessing", "pty"}
    readers = [
        module
        for module in modules()
        if module.startswith(("experiments.analysis", "experiments.results", "plots"))
        if module != "plots.site"
    ]
    assert len(readers) > 70
    importers = {module for module in readers if _packages(modules()[module]) & starting}
    starters = {"experiments.processes.executables"}
    assert importers | {module for module in readers if imports()[module] & starters} == set()


def test_a_circle_is_seen() -> None:
    assert set(circle({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_the_driver_and_the_plots_never_start_an_mpi() -> None:
    """mpi4py initialises MPI as it is imported, and Open MPI leaves a file in /dev/shm."""
    program = (
        "import sys, tasks, plots.draw, plots.html.report; sys.exit('mpi4py.MPI' in sys.modules)"
    )
    subprocess.run([sys.executable, "-c", program], cwd=ROOT, check=True)


def test_a_command_starts_without_the_slow_packages_of_others() -> None:
    program = "import sys, tasks; print({'matplotlib', 'pandas', 'scipy'} & sys.modules.keys())"
    started = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, check=True, capture_output=True, text=True
    )
    assert started.stdout == "set()\n"

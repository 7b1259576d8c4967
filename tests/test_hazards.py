"""No source of the project lets strangers in: by bytes that it runs, by doors, on a terminal.

It runs no bytes that somebody else may have written, listens at no machine's every address, and
makes no pipe for other users. An address that is computed or passed in is not seen: tests of each
listener look at those. Folders are not either: whether others share their parent is no matter of
the source.
"""

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
ANY = ("0.0.0.0", "::", "[::]")
PIPE = 0o600
REASONS = {
    (
        "experiments/baselines/processes.py",
        "multiprocessing.connection",
    ): "its wait() alone: for the ends of children that it has started",
    (
        "hbmcomm/transports/objects.py",
        "pickle",
    ): "as mpi4py: objects come from ranks of this job, through memory that only its user may open",
}
"""(file, what it uses): why no one else's bytes come there."""
TABLES = ("to_table", "tuning_table", "machines")
"""Functions whose text experiments/console.py has made printable, with its styles."""
JSON = ("dumps", "to_json")


def name_of(node: ast.expr) -> str:
    """torch.load of that call; "" of what is no name."""
    if isinstance(node, ast.Attribute):
        return f"{name_of(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def literal(call: ast.Call, keyword: str) -> object:
    """The value that a call gives to an argument; None where it gives none, or computes it."""
    values = [word.value for word in call.keywords if word.arg == keyword]
    return values[0].value if values and isinstance(values[0], ast.Constant) else None


def is_any(node: ast.expr) -> bool:
    """Whether an expression is a literal for all addresses, alone or before a port."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return is_any(node.values[0])
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, str) and (value in ANY or value.startswith(("0.0.0.0:", "[::]:")))


def of_call(node: ast.Call) -> Iterator[str]:
    name, given = name_of(node.func), {word.arg for word in node.keywords}
    unpickles = "allow_pickle" in given and literal(node, "allow_pickle") is not False
    trusts = name in LOADERS and literal(node, "weights_only") is not True
    if name in CALLS or name.endswith(".read_pickle") or unpickles or trusts:
        yield name
    for place in (*node.args, *(word.value for word in node.keywords)):
        first = place.elts[0] if isinstance(place, ast.Tuple) and place.elts else None
        takes = isinstance(first, ast.Constant) and first.value == ""
        if takes and name.endswith(("bind", "create_server", "Server")):
            yield "all addresses"
    if name == "os.mkfifo":
        modes = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "mode")]
        literals = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
        if not modes or any(type(mode) is int and mode & ~PIPE for mode in literals):
            yield "a pipe of others"


def hazards(source: str) -> Iterator[str]:
    """What a source has that can run bytes which it reads, or that lets strangers in."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            yield from MODULES & {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom):
            module = node.module or ""
            yield from MODULES & {module, *(f"{module}.{alias.name}" for alias in node.names)}
        elif isinstance(node, ast.Constant | ast.JoinedStr) and is_any(node):
            yield "all addresses"
        elif isinstance(node, ast.Call):
            yield from of_call(node)


def sources(*folders: str) -> Iterator[tuple[str, str]]:
    """Name and text of each Python file."""
    for path in (*ROOT.glob("*.py"), *(p for name in folders for p in (ROOT / name).rglob("*.py"))):
        yield str(path.relative_to(ROOT)), path.read_text(encoding="utf-8")


def test_there_is_no_hazard_but_for_a_reason() -> None:
    texts = dict(sources(*SOURCES))
    occurrences = {(name, hazard) for name, text in texts.items() for hazard in hazards(text)}
    assert len(texts) > 100 and occurrences == set(REASONS)


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
        "socket.create_server(('', 0))",
        "listener.bind(('0.0.0.0', port))",
        "HTTPServer(('', 80), Handler)",
        "http.server.HTTPServer(server_address=('', 80))",
        "server.add_insecure_port('[::]:0')",
        "server.add_insecure_port(f'0.0.0.0:{port}')",
        "HOST = '0.0.0.0'",
        "os.mkfifo(path)",
        "os.mkfifo(path, 0o666)",
        "os.mkfifo(path, mode=0o640)",
    ],
)
def test_a_hazard_is_seen(source: str) -> None:
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
        "socket.create_server((address, 0))",
        "socket.create_server(('127.0.0.1', 0))",
        "server.add_insecure_port(f'{address}:0')",
        "os.mkfifo(path, PRIVATE)",
        "os.mkfifo(path, 0o600)",
        "dict([('', 0)])",
        "f''",
    ],
)
def test_what_is_none_is_not(source: str) -> None:
    assert not list(hazards(source))


def of_table(call: ast.Call) -> bool:
    """Whether a print() has nothing but a table or JSON, which escapes what it holds."""
    inner = [node for node in ast.walk(call) if isinstance(node, ast.Call) and node is not call]
    names = {node.func.attr for node in inner if isinstance(node.func, ast.Attribute)}
    return bool(names) and names <= {*TABLES, *JSON}


def test_commands_print_by_print_text_alone() -> None:
    """What they print is printable, whatever files and folders are called."""
    printing = [
        f"{name}:{node.lineno}"
        for name, text in sources("commands", "plots")
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Call) and name_of(node.func) == "print" and not of_table(node)
    ]
    assert printing == []

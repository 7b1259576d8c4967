"""No code of the project listens at all addresses of a machine, or makes a pipe for other users.

An address that is computed or passed in is not seen: tests of each listener look at those. Folders
are not either: whether others share their parent is no matter of the source.
"""

import ast
from collections.abc import Iterator

import pytest

from tests.test_unpickling import ROOT, SOURCES, name_of

ANY = ("0.0.0.0", "::", "[::]")
PIPE = 0o600


def is_any(node: ast.expr) -> bool:
    """Whether an expression is a literal for all addresses, alone or before a port."""
    if isinstance(node, ast.JoinedStr) and node.values:
        return is_any(node.values[0])
    value = node.value if isinstance(node, ast.Constant) else None
    return isinstance(value, str) and (value in ANY or value.startswith(("0.0.0.0:", "[::]:")))


def hazards(source: str) -> Iterator[str]:
    """Lines of a source that let strangers in, each with what does so."""
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Constant | ast.JoinedStr) and is_any(node):
            yield f"{node.lineno}: all addresses"
        elif isinstance(node, ast.Call):
            for place in (*node.args, *(word.value for word in node.keywords)):
                first = place.elts[0] if isinstance(place, ast.Tuple) and place.elts else None
                takes = isinstance(first, ast.Constant) and first.value == ""
                if takes and name_of(node.func).endswith(("bind", "create_server", "Server")):
                    yield f"{node.lineno}: all addresses"
            modes = [*node.args[1:], *(word.value for word in node.keywords if word.arg == "mode")]
            if name_of(node.func) == "os.mkfifo":
                literals = [mode.value for mode in modes if isinstance(mode, ast.Constant)]
                if not modes or any(type(mode) is int and mode & ~PIPE for mode in literals):
                    yield f"{node.lineno}: a pipe of others"


def test_nothing_listens_at_all_addresses_or_makes_a_pipe_for_others() -> None:
    paths = [path for name in SOURCES for path in (ROOT / name).rglob("*.py")]
    found = [
        f"{path.relative_to(ROOT)}:{hazard}"
        for path in (*ROOT.glob("*.py"), *paths)
        for hazard in hazards(path.read_text(encoding="utf-8"))
    ]
    assert len(paths) > 100 and found == []


@pytest.mark.parametrize(
    "source",
    [
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
def test_an_open_door_is_seen(source: str) -> None:
    assert list(hazards(source))


@pytest.mark.parametrize(
    "source",
    [
        "socket.create_server((address, 0))",
        "socket.create_server(('127.0.0.1', 0))",
        "server.add_insecure_port(f'{address}:0')",
        "os.mkfifo(path, PRIVATE)",
        "os.mkfifo(path, 0o600)",
        "dict([('', 0)])",
        "f''",
    ],
)
def test_a_door_of_the_own_user_is_none(source: str) -> None:
    assert not list(hazards(source))

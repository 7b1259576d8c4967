"""What commands print on a terminal is printable, whatever files and folders are called."""

import ast
from pathlib import Path

ROOT = Path(__file__).parents[1]
TABLES = ("to_table", "tuning_table", "machines")
"""Functions whose text experiments/console/output.py has made printable, with its styles."""
JSON = ("dumps", "to_json")


def of_table(call: ast.Call) -> bool:
    """Whether a print() has nothing but a table or JSON, which escapes what it holds."""
    inner = [each for each in ast.walk(call) if isinstance(each, ast.Call) and each is not call]
    names = {each.func.attr for each in inner if isinstance(each.func, ast.Attribute)}
    return bool(names) and names <= {*TABLES, *JSON}


def test_commands_print_by_print_text_alone() -> None:
    paths = [ROOT / "tasks.py"]
    paths += [each for name in ("commands", "plots") for each in (ROOT / name).rglob("*.py")]
    printing = [
        f"{path.relative_to(ROOT)}:{node.lineno}"
        for path in paths
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name)
        if node.func.id == "print" and not of_table(node)
    ]
    assert printing == []

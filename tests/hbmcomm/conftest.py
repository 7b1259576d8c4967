"""Promises that rank programs keep: one test for each, one launch for all of a program.

A program decorates functions with `promise` (ranks/promising.py); a test that takes the fixture
`promise`, in a module with a PROGRAM, runs once for each of their names.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest


def promises_of(program: Path) -> list[str]:
    """The names of a program's promises, in its order."""
    tree = ast.parse(program.read_text(encoding="utf-8"))
    return [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef)
        and any(isinstance(each, ast.Name) and each.id == "promise" for each in node.decorator_list)
    ]


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "promise" in metafunc.fixturenames:
        metafunc.parametrize("promise", promises_of(metafunc.module.PROGRAM))


@pytest.fixture(scope="session")
def kept(
    mpirun_in: Callable[..., Any], tmp_path_factory: pytest.TempPathFactory
) -> Callable[..., None]:
    """kept(program, ranks, promise, **how) fails where a rank does not keep a promise.

    `how` goes to `mpirun`. The first call of a kind launches the whole program. A promise that was
    not kept there, or not reached, is tried alone: what another one broke is not held against it.
    """
    launches: dict[tuple[Any, ...], str] = {}

    def kept(program: Path, ranks: int, promise: str, **how: Any) -> None:
        kind = (program, ranks, repr(sorted(how.items())))
        if kind not in launches:
            folder = tmp_path_factory.mktemp(program.stem)
            launches[kind] = mpirun_in(folder, program, ranks, **how, code=None).output
        if _has_kept(launches[kind], ranks, promise):
            return
        alone = mpirun_in(tmp_path_factory.mktemp(promise), program, ranks, promise, **how)
        assert _has_kept(alone.output, ranks, promise), alone.output

    return kept


def _has_kept(output: str, ranks: int, promise: str) -> bool:
    return output.split("\n").count(f"kept {promise}") == ranks

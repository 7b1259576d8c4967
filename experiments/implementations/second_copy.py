"""Imports a second copy of a package under another name, beside the one that is imported already.

The package imports itself by its absolute name. The names in its import statements are replaced as
each module is compiled; its files stay as they are. Knows nothing of what the package does.
"""

import ast
import sys
from functools import partial
from importlib.machinery import (
    EXTENSION_SUFFIXES,
    SOURCE_SUFFIXES,
    ExtensionFileLoader,
    FileFinder,
    ModuleSpec,
    SourceFileLoader,
)
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any


def load(folder: Path, alias: str) -> ModuleType:
    """The package in a folder, imported as `alias`; so are its own modules.

    Args:
        folder: holds __init__.py; its own name is the one that its modules import. Nothing is
            imported from it yet: a compiled module that is loaded already would share its state.
        alias: a name that no module has yet.

    Raises:
        ImportError: the folder holds no package, or the name is taken.
    """
    if alias in sys.modules:
        raise ImportError(f"a module is imported as {alias} already")
    name, root = folder.name, folder.absolute()
    source = partial(_Source, name=name, alias=alias)
    loaders: Any = (
        (partial(_Extension, name=name), EXTENSION_SUFFIXES),
        (source, SOURCE_SUFFIXES),
    )
    below = FileFinder.path_hook(*loaders)

    def hook(path: str) -> Any:
        """Finds modules in the folder; stays, as packages import parts of theirs late."""
        if not Path(path).is_relative_to(root):
            raise ImportError(f"{path} is not in {root}")
        return below(path)

    file = str(root / "__init__.py")
    spec: Any = spec_from_file_location(
        alias, file, loader=source(alias, file), submodule_search_locations=[str(root)]
    )
    module = sys.modules[alias] = module_from_spec(spec)
    _forget(root)
    sys.path_hooks.insert(0, hook)
    try:
        spec.loader.exec_module(module)
    except BaseException:
        sys.path_hooks.remove(hook)
        _forget(root)
        del sys.modules[alias]
        raise
    return module


def _forget(root: Path) -> None:
    """Let the next import from this folder ask the hooks which finder it takes."""
    for path in [path for path in sys.path_importer_cache if Path(path).is_relative_to(root)]:
        del sys.path_importer_cache[path]


class _Source(SourceFileLoader):
    def __init__(self, module: str, file: str, *, name: str, alias: str) -> None:
        super().__init__(module, file)
        self._name, self._alias = name, alias

    def get_code(self, fullname: str) -> CodeType:
        """Compiled anew each time: a cached one would be taken for the file as it is."""
        tree = ast.parse(self.get_data(self.path), self.path)
        renamed = ast.fix_missing_locations(_Rename(self._name, self._alias).visit(tree))
        code: CodeType = compile(renamed, self.path, "exec", dont_inherit=True)
        return code


class _Extension(ExtensionFileLoader):
    """cffi enters a compiled module into sys.modules by the name with which it was compiled."""

    def __init__(self, module: str, file: str, *, name: str) -> None:
        super().__init__(module, file)
        self._own = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        before = self._entries()
        try:
            return super().create_module(spec)
        finally:
            for entry in self._entries():
                del sys.modules[entry]
            sys.modules.update(before)

    def _entries(self) -> dict[str, ModuleType]:
        return {
            entry: module
            for entry, module in sys.modules.items()
            if entry.startswith(f"{self._own}.")
        }


class _Rename(ast.NodeTransformer):
    """Replaces the package's name in import statements, and in calls of import_module."""

    def __init__(self, name: str, alias: str) -> None:
        self._name, self._alias = name, alias

    def _new(self, module: str) -> str:
        first, dot, rest = module.partition(".")
        return f"{self._alias}{dot}{rest}" if first == self._name else module

    def visit_ImportFrom(self, node: ast.ImportFrom) -> ast.ImportFrom:
        if node.module and not node.level:
            node.module = self._new(node.module)
        return node

    def visit_Import(self, node: ast.Import) -> list[ast.stmt]:
        """`import package.part` binds "package", which is to mean the copy from then on."""
        statements: list[ast.stmt] = []
        for alias in node.names:
            new = self._new(alias.name)
            statements.append(ast.Import([ast.alias(new, alias.asname)]))
            if new != alias.name and alias.asname is None:
                statements.append(ast.Import([ast.alias(self._alias, self._name)]))
        return [ast.copy_location(statement, node) for statement in statements]

    def visit_Call(self, node: ast.Call) -> ast.AST:
        self.generic_visit(node)
        called = node.func.attr if isinstance(node.func, ast.Attribute) else None
        called = node.func.id if isinstance(node.func, ast.Name) else called
        if called in ("import_module", "__import__", "find_spec") and node.args:
            first = node.args[0]
            if isinstance(first, ast.Constant) and isinstance(first.value, str):
                first.value = self._new(first.value)
        return node

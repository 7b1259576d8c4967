"""A package is imported twice, and the two share nothing."""

import importlib
import shutil
import sys
import uuid
from collections.abc import Iterator
from importlib.machinery import SOURCE_SUFFIXES, FileFinder, SourceFileLoader
from pathlib import Path
from textwrap import dedent

import pytest

import hbmcomm
from experiments.implementations.second_copy import load
from tests.starting import Start

FILES = {
    "__init__.py": """
        from {name}.state import count, LOG
        import {name}.inner.deep
        import {name}.state as renamed
        by_dunder = lambda: __import__("{name}.late").late
        def lazily():
            from {name}.late import VALUE
            return VALUE
        def by_function():
            import importlib
            return importlib.import_module("{name}.late").VALUE
        whole = {name}.inner.deep.WHERE
    """,
    "state.py": "LOG = []\ncount = LOG.append",
    "late.py": "import {name}\nVALUE = {name}.__name__",
    "inner/__init__.py": "",
    "inner/deep.py": """
        import json, {name}.state
        from ..state import LOG
        WHERE = __name__
        TEXT = "{name}.state is not an import"
        assert LOG is {name}.state.LOG
    """,
}


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A package that imports itself in every way, importable by its own name as well."""
    name = f"package_{uuid.uuid4().hex[:8]}"
    for file, text in FILES.items():
        path = tmp_path / "first" / name / file
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(dedent(text).replace("{name}", name))
    shutil.copytree(tmp_path / "first", tmp_path / "second")
    monkeypatch.syspath_prepend(tmp_path / "first")
    hooks = list(sys.path_hooks)
    yield tmp_path / "second" / name
    sys.path_hooks[:] = hooks
    for module in [imported for imported in sys.modules if imported.startswith((name, "copy_of_"))]:
        del sys.modules[module]


def test_every_way_in_which_a_package_imports_itself_leads_to_the_copy(package: Path) -> None:
    copy = load(package, "copy_of_it")
    assert copy.__name__ == "copy_of_it"
    assert copy.whole == "copy_of_it.inner.deep"
    assert copy.lazily() == copy.by_function() == copy.by_dunder().VALUE == "copy_of_it"
    assert copy.renamed is sys.modules["copy_of_it.state"]
    text = copy.inner.deep.TEXT
    assert text == f"{package.name}.state is not an import"
    assert not any(imported.partition(".")[0] == package.name for imported in sys.modules)


def test_the_two_share_nothing(package: Path) -> None:
    original = importlib.import_module(package.name)
    copy = load(package, "copy_of_it")
    copy.count("here")
    assert (original.LOG, copy.LOG) == ([], ["here"])
    assert importlib.import_module(package.name) is original
    assert not list(package.rglob("__pycache__")), "which would be taken for the files as they are"


def test_a_name_that_is_taken_is_refused(package: Path) -> None:
    load(package, "copy_of_it")
    with pytest.raises(ImportError, match="imported as copy_of_it already"):
        load(package, "copy_of_it")


def test_a_package_that_fails_leaves_no_trace(package: Path) -> None:
    (package / "late.py").write_text("raise ValueError('broken')")
    (package / "__init__.py").write_text(f"import {package.name}.late")
    before = list(sys.path_hooks)
    with pytest.raises(ValueError, match="broken"):
        load(package, "copy_of_it")
    assert sys.path_hooks == before
    assert not {"copy_of_it", "copy_of_it.late"} & sys.modules.keys()
    (package / "late.py").write_text("NAME = __name__")
    load(package, "copy_of_that")
    assert sys.modules["copy_of_that.late"].NAME == "copy_of_that.late"


def test_a_folder_that_was_imported_from_before_is_copied_all_the_same(package: Path) -> None:
    (package / "late.py").write_text("NAME = __name__")
    sys.path_importer_cache[str(package)] = FileFinder(
        str(package), (SourceFileLoader, SOURCE_SUFFIXES)
    )
    (package / "__init__.py").write_text(f"import {package.name}.late")
    load(package, "copy_of_it")
    assert sys.modules["copy_of_it.late"].NAME == "copy_of_it.late"


@pytest.mark.ranks
def test_the_library_has_two_compiled_cores_then(mpirun: Start, tmp_path: Path) -> None:
    """In a process of its own: MPI starts there."""
    own = Path(hbmcomm.__file__).parent
    shutil.copytree(own, tmp_path / "hbmcomm", ignore=shutil.ignore_patterns("__pycache__"))
    program = f"""
        import sys
        from pathlib import Path
        import hbmcomm
        from hbmcomm.transports import native
        from experiments.implementations.second_copy import load
        ours = sys.modules["hbmcomm._native._core"]
        copy = load(Path({str(tmp_path / "hbmcomm")!r}), "hbmcomm_copy")
        copy.Communicator
        theirs = sys.modules["hbmcomm_copy._native._core"]
        assert sys.modules["hbmcomm._native._core"] is ours is not theirs
        assert theirs.__file__.startswith({str(tmp_path)!r}) and not ours.__file__.startswith(
            {str(tmp_path)!r})
        assert ours.lib is native.lib
        assert native.lib is not sys.modules["hbmcomm_copy.transports.native"].lib
        assert not issubclass(copy.Communicator, hbmcomm.Communicator)
        print("two")
    """
    script = tmp_path / "program" / "two.py"  # beside the copy it would import that
    script.parent.mkdir()
    script.write_text(dedent(program))
    assert mpirun(script, 1).output.strip() == "two"

"""When the C core is compiled in place, and that its users are not disturbed."""

import os
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


def build(tree: Path) -> int:
    """Build in place as an editable install does; which file the core then is."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=tree, check=True)
    return (tree / "hbmcomm/_native/_core.abi3.so").stat().st_ino


def prepare(tree: Path) -> None:
    """A project with the real recipe and a core of one function."""
    native = tree / "hbmcomm" / "_native"
    server = tree / "hbmcomm" / "training" / "parameter_server"
    for folder in (native / "room", server):
        folder.mkdir(parents=True)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "hbmcomm/_native/build.py"):
        shutil.copy(ROOT / name, tree / name)
    (native / "interface.h").write_text("int answer(void);\n")
    (server / "update.h").write_text("")
    (native / "libraries.cdef").write_text("int puts(char *);\n")
    (native / "layout.h").write_text('#include "interface.h"\n')
    answer = '#include "layout.h"\nint answer(void) { return 42; }\n'
    (native / "room" / "answer.c").write_text(answer)


def test_a_current_core_is_kept_and_an_outdated_one_replaced_under_its_users(
    tmp_path: Path,
) -> None:
    native = tmp_path / "hbmcomm" / "_native"
    prepare(tmp_path)
    first = build(tmp_path)
    declarations = native / "_libraries.py"
    declarations.unlink()
    assert build(tmp_path) == first
    assert declarations.exists()
    with (native / "_core.abi3.so").open("rb") as used:
        before = used.read()
        os.utime(native / "layout.h", (2**32, 2**32))
        assert build(tmp_path) != first
        used.seek(0)
        assert used.read() == before
    assert not list(native.glob("_core.abi3.so.*"))


def test_fast_arithmetic_in_cflags_changes_no_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With -ffast-math, gcc also links code that makes its process flush subnormal numbers to 0."""
    prepare(tmp_path)
    monkeypatch.setenv("CFLAGS", "-Ofast -ffast-math -funsafe-math-optimizations")
    source = tmp_path / "hbmcomm" / "_native" / "room" / "answer.c"
    source.write_text(source.read_text() + "#ifdef __FAST_MATH__\n#error fast\n#endif\n")
    build(tmp_path)
    core = str(tmp_path / "hbmcomm" / "_native" / "_core.abi3.so")
    use = f"import ctypes; x = 1e-310; ctypes.CDLL({core!r}); print(x * 0.5)"
    used = subprocess.run([sys.executable, "-c", use], check=True, capture_output=True, text=True)
    assert used.stdout == "5e-311\n"


def wheel_of(tree: Path, folder: Path, **variables: str) -> subprocess.CompletedProcess[str]:
    """A wheel of the project, as pip makes it from a copy."""
    command = [sys.executable, "setup.py", "-q", "bdist_wheel", f"--dist-dir={folder}"]
    environment = os.environ | variables
    return subprocess.run(command, cwd=tree, env=environment, capture_output=True, text=True)


def test_where_there_is_no_compiler_a_wheel_of_the_same_sources_brings_the_core(
    tmp_path: Path,
) -> None:
    for name in ("compiled", "taken", "changed"):
        prepare(tmp_path / name)
    made = wheel_of(tmp_path / "compiled", tmp_path / "dist")
    assert made.returncode == 0, made.stderr
    (wheel,) = (tmp_path / "dist").iterdir()
    without = {"CC": "false", "LDSHARED": "false", "HBMCOMM_WHEEL": str(wheel)}
    again = wheel_of(tmp_path / "taken", tmp_path / "again", **without)
    assert again.returncode == 0, again.stderr
    with (
        zipfile.ZipFile(wheel) as first,
        zipfile.ZipFile(tmp_path / "again" / wheel.name) as second,
    ):
        for name in ("_core.abi3.so", "_core.sha256", "_libraries.py"):
            assert first.read(f"hbmcomm/_native/{name}") == second.read(f"hbmcomm/_native/{name}")
    source = tmp_path / "changed" / "hbmcomm" / "_native" / "room" / "answer.c"
    source.write_text(source.read_text().replace("42", "43"))
    other = wheel_of(tmp_path / "changed", tmp_path / "other", **without)
    assert other.returncode == 1
    assert "has a core of other sources than this checkout's" in other.stderr
    assert "Traceback" not in other.stderr
    absent = wheel_of(
        tmp_path / "taken", tmp_path / "none", **without | {"HBMCOMM_WHEEL": "no.whl"}
    )
    assert "HBMCOMM_WHEEL=no.whl is no wheel of hbmcomm" in absent.stderr

"""When the C core is compiled in place, and that its users are not disturbed."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def build(tree: Path) -> int:
    """Build in place as an editable install does; which file the core then is."""
    command = [sys.executable, "setup.py", "-q", "build_ext", "--inplace"]
    subprocess.run(command, cwd=tree, check=True)
    return (tree / "hbmcomm/_native/_core.abi3.so").stat().st_ino


def test_a_current_core_is_kept_and_an_outdated_one_replaced_under_its_users(
    tmp_path: Path,
) -> None:
    native = tmp_path / "hbmcomm" / "_native"
    native.mkdir(parents=True)
    for name in ("setup.py", "pyproject.toml", "README.md", "LICENSE", "hbmcomm/_native/build.py"):
        shutil.copy(ROOT / name, tmp_path / name)
    (native / "interface.h").write_text("int answer(void);\n")
    (native / "libraries.cdef").write_text("int puts(char *);\n")
    (native / "layout.h").write_text('#include "interface.h"\n')
    room = native / "room"
    room.mkdir()
    (room / "answer.c").write_text('#include "layout.h"\nint answer(void) { return 42; }\n')
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

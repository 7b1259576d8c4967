"""The C++ part is built once for each torch; a build that cannot be made, or is killed, says so."""

import fcntl
import importlib.util
import os
import platform
import re
import subprocess
import sys
import textwrap
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest

import hbmcomm
from tests.second_user import SecondUser

WHOLE = "the whole library"

FAKE = f"""
import os, signal, sys, time
from pathlib import Path
from hbmcomm.torch import build

def compile(folder):
    with Path("compiled").open("a") as log:
        log.write("x")
    library = folder / f"{{folder.name}}.so"
    library.write_text("a part")
    if sys.argv[1] == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    time.sleep(0.5)
    library.write_text("{WHOLE}")

build.compile_shim = compile
Path(f"ready{{os.getpid()}}").touch()
while len(list(Path().glob("ready*"))) < int(sys.argv[2]):
    time.sleep(0.01)
print(build.build().read_text())
"""
"""A process that builds by a compiler that writes a text.

Its arguments: whether it is killed or completes, and the number of such processes that must have
been started in this folder before it builds.
"""


@pytest.fixture
def build(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """hbmcomm.torch.build, for which nothing is built yet."""
    pytest.importorskip("torch", reason="torch is not installed: pip install torch")
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(tmp_path / "extensions"))
    monkeypatch.chdir(tmp_path)
    from hbmcomm.torch import build

    monkeypatch.setattr(build.compiled_shims, "COMPILED", tmp_path / "compiled")
    return build


@pytest.fixture
def compiled(build: ModuleType) -> Path:
    """A compiled part that fits this torch by its name; it is no library."""
    minor = ".".join(build.torch.__version__.split(".")[:2])
    path: Path = build.compiled_shims.COMPILED / build.compiled_shims.file_name(
        minor, platform.machine()
    )
    path.parent.mkdir()
    path.write_text("no library")
    return path


def _start(how: str, begun: int) -> subprocess.Popen[str]:
    command = [sys.executable, "-c", textwrap.dedent(FAKE), how, str(begun)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def test_where_a_compiled_part_fits_nothing_is_built_and_no_compiler_is_needed(
    build: ModuleType, compiled: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert build.build() == compiled
    assert not Path(os.environ["TORCH_EXTENSIONS_DIR"]).exists()


def test_a_compiled_part_that_cannot_be_loaded_is_reported_and_built_in_its_place(
    build: ModuleType,
    compiled: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    minor = ".".join(build.torch.__version__.split(".")[:2])
    with pytest.raises(build.BuildFailed, match=rf"compiled for torch: {minor}\)$"):
        build.load()
    assert "its compiled C++ part does not fit this torch" in capsys.readouterr().err


def test_a_torch_that_is_too_old_is_refused(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(build.torch, "__version__", "2.9.1+cpu")
    with pytest.raises(build.BuildFailed, match=r"needs torch 2\.10 or newer.*found 2\.9\.1"):
        build.build()


def test_without_a_compiler_the_command_names_it_and_the_remedy_without_a_traceback(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler -m64")
    command = [sys.executable, "-m", "hbmcomm.torch", "build"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout == ""
    assert re.match(r"hbmcomm\.torch: .*needs no-such-compiler; .*: apt install g\+\+", done.stderr)
    assert "Traceback" not in done.stderr


def test_the_command_prints_the_path_of_the_library(built: None) -> None:
    command = [sys.executable, "-m", "hbmcomm.torch", "build"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    path = Path(done.stdout.removesuffix("\n"))
    assert path.is_absolute() and path.suffix == ".so" and path.is_file()
    assert "building" not in done.stderr


@pytest.mark.timeout(60)
def test_a_compiler_that_fails_is_reported_whatever_a_killed_build_has_left(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("CXX", "false")
    folder = build.folder_of_build()
    folder.mkdir(parents=True)
    (folder / "lock").touch()  # torch waits for a file of this name to go away
    with pytest.raises(build.BuildFailed, match="cannot be built for torch"):
        build.build()
    assert not (folder / "complete").exists()


@pytest.mark.rare
def test_a_build_that_was_killed_is_made_again(build: ModuleType) -> None:
    killed = _start("killed", 1)
    assert killed.communicate()[0] == "" and killed.returncode < 0
    output, errors = _start("complete", 2).communicate()
    assert output == f"{WHOLE}\n", errors
    assert Path("compiled").read_text() == "xx"


@pytest.mark.rare
def test_of_processes_that_start_at_once_one_builds_and_all_wait(build: ModuleType) -> None:
    running = [_start("complete", 2) for _ in range(2)]
    outputs = [process.communicate() for process in running]
    assert [output for output, _ in outputs] == [f"{WHOLE}\n"] * 2, outputs
    assert Path("compiled").read_text() == "x"
    assert sum("building its C++ part" in errors for _, errors in outputs) == 1


def test_the_lock_is_private_and_waiting_for_it_is_reported_once_and_ends(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock of an older version, too, which everybody could read."""
    lines: list[str] = []
    lock = build.folder_of_build() / "building"
    lock.parent.mkdir(parents=True)
    lock.touch(0o644)
    monkeypatch.setattr(build, "QUIET", 0.05)
    monkeypatch.setattr(build, "PATIENCE", 0.3)
    with lock.open() as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        with pytest.raises(build.BuildFailed, match=f"held {lock} for 0 minutes; see which .fuser"):
            build.build(lines.append)
    assert lock.stat().st_mode & 0o777 == 0o600
    (line,) = lines
    assert f"waiting for a process that builds its C++ part: it holds {lock}" in line


def test_versions_of_torch_and_changed_sources_have_builds_of_their_own(
    build: ModuleType, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def folder() -> Path:
        path: Path = build.folder_of_build()
        return path

    first = folder()
    assert folder() == first
    with monkeypatch.context() as patch:
        patch.setattr(build.torch, "__version__", "9.9.9")
        assert folder() != first
    copied = tmp_path / "shim"
    copied.mkdir()
    (copied / "changed.cpp").write_text("int changed;")
    monkeypatch.setattr(build.compiled_shims, "SOURCES", copied)
    assert folder() != first
    assert folder().is_relative_to(os.environ["TORCH_EXTENSIONS_DIR"])


def test_a_complete_build_is_used_from_a_folder_that_cannot_be_written_to(
    build: ModuleType,
) -> None:
    """The folder of an image: ranks may only read its root."""
    folder = build.folder_of_build()
    (folder / "building").mkdir(parents=True)  # cannot be opened to be written, by root either
    (folder / "complete").touch()
    assert build.build() == folder / f"{folder.name}.so"


def test_no_code_is_loaded_that_another_user_may_have_built(
    build: ModuleType, second_user: SecondUser
) -> None:
    folder = build.folder_of_build()
    folder.mkdir(parents=True)
    (folder / "complete").touch()
    assert build.build() == folder / f"{folder.name}.so"
    for mode, owner in ((0o777, 0), (0o755, second_user.uid)):
        folder.chmod(mode)
        os.chown(folder, owner, owner)
        with pytest.raises(build.BuildFailed, match=f"can write into {folder}, which holds"):
            build.build()


@pytest.mark.parametrize(
    ("mapped", "is_trusted"),
    [
        ("         0          0 4294967295\n", False),  # outside a user namespace
        ("         0       1000          1\n         1     100000      65536\n", False),
        ("      1000       1000          1\n", True),
        ("         0       1000          1\n      1000     100000          1\n", True),
    ],
)
def test_the_overflow_user_is_trusted_only_where_no_process_can_be_that_user(
    mapped: str, is_trusted: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Needs no torch: the rule is read from its file."""
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    place = Path(hbmcomm.__file__).parent / "torch" / "build.py"
    spec = importlib.util.spec_from_file_location("build_without_torch", place)
    assert spec is not None and spec.loader is not None
    rule = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(rule)
    for name, text in {"OVERFLOW": "65534\n", "MAPPED": mapped}.items():
        (tmp_path / name).write_text(text)
        monkeypatch.setattr(rule, name, tmp_path / name)
    folder = tmp_path / "extensions"
    folder.mkdir(0o755)
    rule.refuse_others(folder)  # this user's own
    owned = SimpleNamespace(st_uid=65534, st_mode=0o755)
    monkeypatch.setattr(Path, "stat", lambda path: owned)
    if is_trusted:
        rule.refuse_others(folder)
    else:
        with pytest.raises(rule.BuildFailed, match=f"can write into {folder}, which holds"):
            rule.refuse_others(folder)


def test_a_folder_that_cannot_be_written_to_is_named_with_the_variable(
    build: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    file = tmp_path / "file"
    file.touch()
    monkeypatch.setenv("TORCH_EXTENSIONS_DIR", str(file))
    with pytest.raises(build.BuildFailed, match=f"kept in {file}/.*set TORCH_EXTENSIONS_DIR"):
        build.build()

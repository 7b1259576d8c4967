import os
import platform
import shutil
import subprocess
from pathlib import Path

import pytest

from experiments.model.errors import Missing
from experiments.processes import executables
from experiments.provision import bootstrap, distro_releases
from experiments.provision.bootstrap import Recipe

BOOKWORM, NOBLE, TRIXIE = distro_releases.SUITES
MIRROR = "http://mirror.example/debian"


@pytest.fixture
def etc(tmp_path):
    """apt's configuration of a Debian bookworm machine."""
    if shutil.which("apt-get") is None:
        pytest.skip("this machine has no apt")
    (tmp_path / "sources.list").write_text(f"deb {MIRROR} bookworm main\n")
    return tmp_path


def on(monkeypatch, distribution, codename):
    release = {"ID": distribution, "VERSION_CODENAME": codename}
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)


def test_what_is_made_comes_from_apts_mirror(monkeypatch, etc):
    on(monkeypatch, "debian", "bookworm")
    for wanted, made in (
        (BOOKWORM, BOOKWORM),
        (TRIXIE, TRIXIE),  # a mirror holds all suites of its distribution
        (NOBLE, BOOKWORM),  # another distribution gives way to the host's own suite
    ):
        assert bootstrap.recipe(wanted, etc) == Recipe(made, MIRROR)


def test_without_any_mirror_there_is_no_recipe(monkeypatch, tmp_path):
    on(monkeypatch, "fedora", "")
    assert bootstrap.recipe(BOOKWORM, tmp_path) is None


def test_the_command_asks_mmdebstrap_for_what_a_rank_needs():
    for suite, components, include in (
        (BOOKWORM, "main", "python3,python3-venv,libmemkind0"),
        (NOBLE, "main,universe", "python3,python3-venv,libmemkind0"),
        (TRIXIE, "main", "python3,python3-venv"),
    ):
        assert bootstrap.command(Recipe(suite, MIRROR), Path("/x/base.tar")) == [
            *("mmdebstrap", "--variant=minbase", f"--components={components}"),
            f"--include={include}",
            "--hook-dir=/usr/share/mmdebstrap/hooks/maybe-merged-usr",
            f"--customize-hook={bootstrap.CLEAN}",
            *(suite.name, "/x/base.tar", MIRROR),
        ]


def test_a_mirror_on_this_disk_is_mounted_where_packages_are_unpacked():
    for mirror in ("file:/srv/debian", "file:///srv/debian"):
        command = bootstrap.command(Recipe(BOOKWORM, mirror), Path("/x/base.tar"))
        assert command[-1] == "file:///srv/debian"
        assert "--hook-dir=/usr/share/mmdebstrap/hooks/file-mirror-automount" in command


def test_the_hook_removes_what_no_container_reads_and_nothing_else(tmp_path):
    for name in ("usr/share/doc/x/y", "usr/share/man/z", "var/log/a", "usr/share/zoneinfo/UTC"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")
    subprocess.run(["sh", "-ec", bootstrap.CLEAN, "exec", str(tmp_path)], check=True)
    left = [path.relative_to(tmp_path) for path in tmp_path.rglob("*") if path.is_file()]
    assert left == [Path("usr/share/zoneinfo/UTC")]
    assert (tmp_path / "usr/share/doc").is_dir()


def test_a_failure_names_the_last_line_and_the_log(monkeypatch, tmp_path):
    stub = tmp_path / "mmdebstrap"
    stub.write_text("#!/bin/sh\necho W: mirror is slow\necho E: no such suite\nexit 3\n")
    stub.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(executables, "find", lambda name: name)
    monkeypatch.setattr(bootstrap, "LOG", tmp_path / "build" / "bootstrap.log")
    with pytest.raises(Missing, match=r"bookworm failed: E: no such suite; read build/boot"):
        bootstrap.make(None, Recipe(BOOKWORM, MIRROR), print)


def test_what_is_not_installed_is_named_with_the_command(monkeypatch):
    for user, programs, lacking in (
        (0, (), "mmdebstrap"),
        (1000, ("mmdebstrap",), "uidmap"),
        (1000, (), "mmdebstrap and uidmap"),
    ):
        monkeypatch.setattr(os, "geteuid", lambda user=user: user)
        monkeypatch.setattr(executables, "find", {name: name for name in programs}.get)
        advice = f"sudo apt-get install -y {lacking.replace(' and ', ' ')}"
        with pytest.raises(Missing, match=rf"needs {lacking}; {advice}$"):
            bootstrap.make(None, Recipe(BOOKWORM, MIRROR), print)

import os
import platform
import subprocess
from pathlib import Path

import pytest

from experiments.provision.images import bootstrap
from experiments.provision.images.bootstrap import Recipe
from experiments.provision.packages import distro_releases

BOOKWORM, NOBLE, TRIXIE = distro_releases.SUITES
MIRROR = "http://mirror.example/debian"


@pytest.fixture
def etc(tmp_path):
    """apt's configuration of a Debian bookworm machine."""
    (tmp_path / "sources.list").write_text(f"deb {MIRROR} bookworm main\n")
    return tmp_path


def on(monkeypatch, distribution, codename):
    release = {"ID": distribution, "VERSION_CODENAME": codename}
    monkeypatch.setattr(platform, "freedesktop_os_release", lambda: release)


def test_a_suite_that_apt_names_comes_from_there(monkeypatch, etc):
    on(monkeypatch, "debian", "bookworm")
    assert bootstrap.recipe(BOOKWORM, etc) == Recipe(BOOKWORM, MIRROR)


def test_a_mirror_holds_the_other_suites_of_its_distribution_too(monkeypatch, etc):
    on(monkeypatch, "debian", "bookworm")
    assert bootstrap.recipe(TRIXIE, etc) == Recipe(TRIXIE, MIRROR)


def test_another_distribution_gives_way_to_the_hosts_own_suite(monkeypatch, etc):
    on(monkeypatch, "debian", "bookworm")
    assert bootstrap.recipe(NOBLE, etc) == Recipe(BOOKWORM, MIRROR)


def test_without_any_mirror_there_is_no_recipe(monkeypatch, tmp_path):
    on(monkeypatch, "fedora", "")
    assert bootstrap.recipe(BOOKWORM, tmp_path) is None


def test_the_command_names_script_suite_mirror_and_target():
    command = bootstrap.command(Recipe(BOOKWORM, MIRROR), Path("/target"))
    assert command == ["sh", str(bootstrap.SCRIPT), "bookworm", MIRROR, "/target"]


@pytest.mark.parametrize(
    ("suite", "components", "include"),
    [
        ("bookworm", "main", "python3,python3-venv,libmemkind0"),
        ("noble", "main,universe", "python3,python3-venv,libmemkind0"),
        ("trixie", "main", "python3,python3-venv"),
    ],
)
def test_the_script_asks_debootstrap_for_what_a_rank_needs(tmp_path, suite, components, include):
    stub = tmp_path / "bin" / "debootstrap"
    stub.parent.mkdir()
    stub.write_text('#!/bin/sh\necho "$@"\nmkdir -p "$5/usr/share/doc/x" "$5/etc/apt"\n')
    stub.chmod(0o755)
    target = tmp_path / "target"
    done = subprocess.run(
        bootstrap.command(Recipe(distro_releases.named(suite), MIRROR), target),
        env={"PATH": f"{stub.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (
        f"--variant=minbase --components={components} "
        f"--include={include} {suite} {target} {MIRROR}\n"
    )
    assert (target / "etc/apt").is_dir()
    assert not list((target / "usr/share/doc").iterdir())


def test_the_script_stops_at_the_first_failure(tmp_path):
    stub = tmp_path / "debootstrap"
    stub.write_text("#!/bin/sh\nexit 3\n")
    stub.chmod(0o755)
    done = subprocess.run(
        bootstrap.command(Recipe(BOOKWORM, MIRROR), tmp_path / "target"),
        env={"PATH": f"{tmp_path}:{os.environ['PATH']}"},
        check=False,
    )
    assert done.returncode == 3

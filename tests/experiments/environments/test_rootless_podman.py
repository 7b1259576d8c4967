"""Podman of an ordinary user for real: results belong to the user, and nothing is left.

The user's world has what machines of users have and this one may lack: cgroups of one version, a
/dev/net/tun for all, and an interpreter that the user can reach.
"""

import json
import os
import shutil
import stat
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from experiments.model.checkout import ROOT
from experiments.processes import executables, tracking
from experiments.processes.executables import captured
from tests.awaiting import wait_for
from tests.second_user import SecondUser
from tests.tiny_campaign import tiny

pytestmark = [pytest.mark.container, pytest.mark.rare]

PROGRAMS = ("podman", "crun", "slirp4netns", "newuidmap", "mmdebstrap", "unshare")
FOLDERS = ("commands", "docker", "docs", "experiments", "hbmcomm", "plots")
"""What a campaign needs of a checkout, beside its files."""
PATIENCE = 1200  # seconds: the image is made for this user alone
WORLD = """
unified=/sys/fs/cgroup/unified
if mountpoint -q "$unified"; then umount -l "$unified"; fi
if [ -e tun ]; then mount --bind tun /dev/net/tun; fi
closed=$1; shift
if [ "$closed" ]; then
    for each in "$@"; do
        if [ "$each" = -- ]; then break; fi
        mkdir -p "kept$each"; mount --bind "$each" "kept$each"
    done
    mount -t tmpfs -o mode=755 tmpfs "$closed"
fi
while [ "$1" != -- ]; do mkdir -p "$1"; mount --bind "kept$1" "$1"; shift; done
shift
exec "$@"
"""
"""For a shell of root in a mount namespace, in the user's folder: a folder that others may not
enter or "", what of it the user needs, "--" and a command."""


@dataclass(frozen=True)
class Home:
    """The user's folder, with a checkout, and a file with a campaign."""

    user: SecondUser
    folder: Path

    def run(self, *words: str) -> "subprocess.CompletedProcess[str]":
        """Run a command as the user, in the user's world."""
        folder = self.folder
        needed = [Path(sys.base_prefix), Path(sys.prefix)]
        closed = next((str(outer) for outer in map(_closed, needed) if outer), "")
        kept = dict.fromkeys(str(path) for path in needed if closed and _closed(path))
        variables = {
            **{name: text for name, text in os.environ.items() if name.startswith("PIP_")},
            "HOME": str(folder),
            "USER": self.user.name,
            "XDG_RUNTIME_DIR": str(folder / "run"),
            "PATH": f"{Path(sys.executable).parent}:{executables.path()}",
            "PYTHONPATH": str(folder / "checkout"),
        }
        settings = [f"{name}={text}" for name, text in variables.items()]
        command = ["env", "--chdir=checkout", "-i", *settings, *words]
        apart = ["unshare", "--mount", "--propagation=private", "sh", "-ec", WORLD, "sh"]
        words = [*apart, closed, *kept, "--", *self.user.command(command)]
        return captured(words, cwd=folder, timeout=PATIENCE)

    def processes(self) -> list[str]:
        """What runs as the user, but for zombies."""
        running = []
        for path in Path("/proc").glob("[0-9]*"):
            pid = int(path.name)
            try:
                if path.stat().st_uid == self.user.uid and tracking.identity(pid):
                    running.append(tracking.name(pid))
            except OSError:  # it has ended
                continue
        return running


def _closed(path: Path) -> Path | None:
    """The outermost folder above a path that others may not enter."""
    above = [*reversed(path.resolve().parents)]
    return next((parent for parent in above if not parent.stat().st_mode & stat.S_IXOTH), None)


@pytest.fixture
def home(second_user: SecondUser, shared_by_users: Path) -> Iterator[Home]:
    """A home of a user that has ids in /etc/subuid."""
    if lacking := [name for name in PROGRAMS if not executables.find(name)]:
        pytest.skip(f"Podman without root needs {' and '.join(lacking)}")
    folder = shared_by_users
    (folder / "checkout").mkdir()
    for name in FOLDERS:
        ignored = shutil.ignore_patterns("__pycache__")
        shutil.copytree(ROOT / name, folder / "checkout" / name, ignore=ignored)
    for path in ROOT.iterdir():
        if path.is_file():
            shutil.copy(path, folder / "checkout")
    (folder / "tiny.toml").write_text(
        tiny(launches={"environments": ["host", "podman"], "layouts": ["one", "per-rank"]})
    )
    settings = folder / ".config/containers"
    settings.mkdir(parents=True)
    (settings / "storage.conf").write_text('[storage]\ndriver = "overlay"\n')
    (settings / "containers.conf").write_text(
        '[engine]\nruntime = "crun"\ncgroup_manager = "cgroupfs"\nevents_logger = "file"\n'
        f'network_cmd_path = "{executables.find("slirp4netns")}"\n'
        f'[engine.runtimes]\ncrun = ["{executables.find("crun")}"]\n'
    )
    (folder / "run").mkdir(mode=0o700)
    for path in (folder, *folder.rglob("*")):
        os.chown(path, second_user.uid, second_user.gid, follow_symlinks=False)
    device = Path("/dev/net/tun").stat()
    if not device.st_mode & stat.S_IWOTH:
        os.mknod(folder / "tun", 0o600 | stat.S_IFCHR, device.st_rdev)
        (folder / "tun").chmod(0o666)
    yield Home(second_user, folder)


def test_a_campaign_of_an_ordinary_user(home: Home) -> None:
    out = home.folder / "out"
    checkout = home.folder / "checkout"
    done = home.run(
        *(sys.executable, "-P", "-m", "invoke", "--search-root", str(checkout), "run"),
        *("--experiment", str(home.folder / "tiny.toml"), "--out", str(out)),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    names = ("host", "podman-tuned-one", "podman-tuned-per-rank")
    files = {name: out / f"launches/0000-{name}.json" for name in names}
    tried = {
        name: json.loads(file.read_text())["environment"]["datapath"]
        for name, file in files.items()
    }
    assert {path.stat().st_uid for path in (out, *out.rglob("*"))} == {home.user.uid}
    for name in names[1:]:
        inside, outside = tried[name], tried["host"]
        assert (inside["uid"], inside["seccomp"]) == (home.user.uid, "2")
        assert int(inside["capabilities_effective"], 16) == 0
        assert inside["namespaces"]["user"] != outside["namespaces"]["user"]
        assert inside["cpus_allowed"] == outside["cpus_allowed"]
    engines = json.loads((out / "campaign.json").read_text())["engines"]
    assert engines["podman"]["rootless"] == "yes"

    wait_for(lambda: not home.processes(), "end of the user's processes", 10)
    assert [*(home.folder / "run").glob("*.sock")] == []
    stored = home.folder / ".local/share/containers/storage/overlay-containers/containers.json"
    assert json.loads(stored.read_text()) == []

"""Ids that containers in user namespaces take, and why a user's Podman has none. Reads only.

An ordinary user's containers need ids beside the user's own, lent in /etc/subuid and /etc/subgid.
Where root runs Podman, a container in a user namespace takes those lent to the user `containers`.
"""

import os
import pwd
import re
from pathlib import Path

from experiments.environments.profiles import LENT
from experiments.machine.facts import NOT_FOUND, read
from experiments.processes import executables
from experiments.provision.engine import EngineMissing

SUBORDINATE = (Path("/etc/subuid"), Path("/etc/subgid"))
"""Ids that users may take in their namespaces: NAME:FIRST:COUNT in each line."""
OF_ROOT = "containers"
"""The owner, in /etc/subuid, of the ids that root's Podman gives to user namespaces."""
FIRST_LENT = 100_000
"""Where useradd(8) begins to lend ids."""
FORBIDDING = {
    "user/max_user_namespaces": ("0", "10000"),
    "kernel/unprivileged_userns_clone": ("0", "1"),
}
"""Settings in /proc/sys: a value that keeps users from making namespaces, and one that does not."""
HYBRID = "sys/fs/cgroup/unified/cgroup.controllers"
"""Not empty where versions 1 and 2 of cgroups have controllers each, which crun does not take."""
DATABASE = "etc/nsswitch.conf"
OTHERS = re.compile(r"^subid:(?!\s*files\s*$)", re.MULTILINE)
"""A line of DATABASE that has ids lent by something other than the files SUBORDINATE."""


def lent(file: Path, user: str = "") -> list[range]:
    """The ranges of subuid(5) or subgid(5); none where there is no such file.

    Args:
        user: a name or a number, as the file has it; "" for all users.
    """
    parts = [re.fullmatch(r"([^:]*):(\d+):(\d+)", line.strip()) for line in read(file).splitlines()]
    return [
        range(int(part[2]), int(part[2]) + int(part[3]))
        for part in parts
        if part and user in ("", part[1])
    ]


def of_root() -> tuple[int, int]:
    """The first uid and gid of LENT that root's Podman may map into a container; 0 for none."""
    uid, gid = (
        next((ids.start for ids in lent(file, OF_ROOT) if len(ids) >= LENT), 0)
        for file in SUBORDINATE
    )
    return (uid, gid) if uid and gid else (0, 0)


def without_ids_of_root() -> EngineMissing:
    """Nothing lends ids to root's containers: with the command that does."""
    first, last = _free()
    option = f"--add-subuids {first}-{last} --add-subgids {first}-{last}"
    return EngineMissing(
        f"profile userns needs {LENT} ids for {OF_ROOT} in /etc/subuid and /etc/subgid",
        f"useradd --system --no-create-home {OF_ROOT}; usermod {option} {OF_ROOT}",
    )


def hindrance(root: Path = Path("/")) -> EngineMissing | None:
    """Why an ordinary user's Podman starts no container here; None where nothing is seen.

    Args:
        root: the folder that holds proc, sys and etc/nsswitch.conf.
    """
    if executables.find("newuidmap") is None:
        return EngineMissing(
            "Podman without root needs newuidmap, which is not installed",
            "sudo apt-get install -y uidmap",
        )
    for name, (forbids, allows) in FORBIDDING.items():
        if read(root / "proc/sys" / name) == forbids:
            return EngineMissing(
                f"Podman without root needs user namespaces, and /proc/sys/{name} is {forbids}",
                f"sudo sysctl -w {name.replace('/', '.')}={allows}",
            )
    if read(root / HYBRID) not in ("", NOT_FOUND):
        return EngineMissing(
            f"Podman without root starts no container where /{HYBRID} names controllers: crun "
            "takes either version of cgroups, not both",
            "boot with systemd.unified_cgroup_hierarchy=1, or use --env charliecloud",
        )
    return None if OTHERS.search(read(root / DATABASE)) else _without_ids()


def _without_ids() -> EngineMissing | None:
    number = os.geteuid()
    user = pwd.getpwuid(number).pw_name
    for file in SUBORDINATE:
        count = sum(map(len, [*lent(file, user), *lent(file, str(number))]))
        if count < LENT:
            first, last = _free()
            return EngineMissing(
                f"Podman without root needs {LENT} ids for {user} in {file}, which lends {count}",
                f"sudo usermod --add-subuids {first}-{last} --add-subgids {first}-{last} {user}, "
                "then podman system migrate",
            )
    return None


def _free() -> tuple[int, int]:
    """The first and the last of LENT ids that no user has."""
    taken = (ids.stop for file in SUBORDINATE for ids in lent(file))
    first = max(taken, default=FIRST_LENT)
    return first, first + LENT - 1

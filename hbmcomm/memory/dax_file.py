"""A device-dax file such as /dev/dax0.0: its properties, whether this process may use it, its kind.

It is memory that firmware or an administrator reserved, as a character device. It can be mapped,
shared, at multiples of its own alignment; it cannot be written, truncated, or bound: its pages are
on the device's target node. This module maps nothing.
"""

from __future__ import annotations

import errno
import os
import re
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hbmcomm.errors import KindUnavailable
from hbmcomm.memory import sysfs as reader
from hbmcomm.memory.kinds import Kind

SYSFS = Path("/sys")


@dataclass(frozen=True)
class DaxFile:
    """A device that may be mapped; bytes."""

    path: str
    name: str
    """The kernel's name, such as dax0.0; a container's file may have another."""
    number: tuple[int, int]
    nbytes: int
    alignment: int
    node: int | None
    """Its target node: where its memory is, whether that is a node now or only would become one.
    None where the kernel does not give it."""

    @property
    def evidence(self) -> str:
        """Its node, and where that was read."""
        target = "none" if self.node is None else self.node
        return f"{self.path}: target_node {target} in /sys/bus/dax/devices/{self.name}"


def inspect(path: str, sysfs: Path = SYSFS) -> DaxFile:
    """The device of a file.

    Raises:
        KindUnavailable: There is none that this process can map; gives the reason and a remedy.
    """
    try:
        state = Path(path).stat()
    except OSError as error:
        raise KindUnavailable(_why_missing(path, error, sysfs)) from None
    if not stat.S_ISCHR(state.st_mode):
        what = "a folder" if stat.S_ISDIR(state.st_mode) else "no character device"
        raise KindUnavailable(
            f"device={path}: this is {what}; name a dax device such as /dev/dax0.0 "
            "(pass it into a container by --device, not by -v)"
        )
    number = os.major(state.st_rdev), os.minor(state.st_rdev)
    folder = _folder(number, sysfs)
    if folder is None:
        raise KindUnavailable(
            f"device={path}: character device {number[0]}:{number[1]} is not a dax device; "
            f"take one of this machine's: {_known(sysfs)}"
        )
    device = _read(path, number, folder)
    _check_usable(device, folder)
    return device


def open_file(device: DaxFile) -> int:
    """A descriptor to map the device by.

    Raises:
        KindUnavailable: It is refused; gives the reason and a remedy.
    """
    try:
        return os.open(device.path, os.O_RDWR | os.O_CLOEXEC)
    except OSError as error:
        raise KindUnavailable(_why_refused(device.path, error)) from None


def kind_of(device: DaxFile) -> Kind:
    """The kind `dax`: strictly this device's memory."""
    nodes = () if device.node is None else (device.node,)
    return Kind("dax", nodes, "bind", emulated=False, evidence=device.evidence)


def mapped(
    start: int, end: int, procfs: Path = Path("/proc"), sysfs: Path = SYSFS
) -> Iterator[tuple[int, int, DaxFile]]:
    """The parts of a range of addresses of this process that are mapped from dax devices."""
    try:
        lines = (procfs / "self/maps").read_bytes().splitlines()
    except OSError:
        return
    for line in lines:  # a name may be in any encoding
        match = re.match(r"([0-9a-f]+)-([0-9a-f]+) ...s \S+ \S+ \d+ +(/.*)", os.fsdecode(line))
        if not match:
            continue
        low, high = max(int(match[1], 16), start), min(int(match[2], 16), end)
        if low < high and (device := _device_at(match[3], sysfs)):
            yield low, high, device


def _device_at(path: str, sysfs: Path) -> DaxFile | None:
    try:
        state = Path(path).stat()
    except OSError:
        return None
    number = os.major(state.st_rdev), os.minor(state.st_rdev)
    folder = _folder(number, sysfs) if stat.S_ISCHR(state.st_mode) else None
    return _read(path, number, folder) if folder else None


def _folder(number: tuple[int, int], sysfs: Path) -> Path | None:
    """The folder of sysfs for a character device; None if it is not on the dax bus."""
    folder = sysfs / f"dev/char/{number[0]}:{number[1]}"
    return folder.resolve() if (folder / "subsystem").resolve().name == "dax" else None


def _read(path: str, number: tuple[int, int], folder: Path) -> DaxFile:
    node = _number(folder / "target_node", -1)
    return DaxFile(
        path=path,
        name=folder.name,
        number=number,
        nbytes=_number(folder / "size", 0),
        alignment=_number(folder / "align", 2 * 2**20),
        node=node if node >= 0 else None,
    )


def _number(file: Path, otherwise: int) -> int:
    try:
        return int(file.read_text())
    except (OSError, ValueError):  # kernels before 5.1 have no target_node, before 5.10 no align
        return otherwise


def _check_usable(device: DaxFile, folder: Path) -> None:
    if (folder / "driver").resolve().name == "kmem":
        raise KindUnavailable(_why_online(device.path, device.name, device.node))
    if device.nbytes <= 0:
        raise KindUnavailable(
            f"device={device.path}: {device.name} has no memory (size 0); "
            "give it some with daxctl create-device or ndctl create-namespace --mode=devdax"
        )
    os.close(open_file(device))


def _why_missing(path: str, error: OSError, sysfs: Path) -> str:
    name = Path(path).name
    for device in reader.dax_devices(sysfs):
        if device.name == name and device.online:
            return _why_online(path, name, device.target_node)
    if error.errno == errno.ENOENT:
        return (
            f"device={path}: there is no such file; the dax devices of this machine are "
            f"{_known(sysfs)} (in a container, pass one in: docker --device {path})"
        )
    return f"device={path}: {error.strerror}; take one of this machine's: {_known(sysfs)}"


def _why_online(path: str, name: str, node: int | None) -> str:
    return (
        f"device={path}: {name} is online as memory, node {node}; take kind dax_kmem "
        f"(or hbw, where it is HBM) instead of device=, or make it a device again: "
        f"daxctl reconfigure-device --mode=devdax --force {name}"
    )


def _why_refused(path: str, error: OSError) -> str:
    if error.errno == errno.EACCES:
        return f"device={path}: {_why_not_permitted(path, Path(path).stat())}"
    if error.errno == errno.EPERM:  # of a container's list of devices
        return (
            f"device={path}: this container may not open it ({error.strerror}); "
            f"pass it in by docker --device {path}, not as a mount (-v)"
        )
    if error.errno in (errno.ENXIO, errno.ENODEV):
        return (
            f"device={path}: the device is gone ({error.strerror}); if it is online as memory now "
            "(daxctl list), take kind dax_kmem instead of device="
        )
    return f"device={path}: opening it was refused ({error.strerror}); take another device"


def _why_not_permitted(path: str, state: os.stat_result) -> str:
    groups = ", ".join(str(group) for group in sorted({os.getegid(), *os.getgroups()}))
    mode = stat.S_IMODE(state.st_mode)
    reason = (
        f"user {os.geteuid()} in groups {groups} may not read and write it: "
        f"mode {mode:o}, user {state.st_uid}, group {state.st_gid}"
    )
    join = f"(docker: --device {path} --group-add {state.st_gid})"
    if mode & 0o060 == 0o060:
        return f"{reason}; join group {state.st_gid} {join}"
    return (
        f"{reason}; as root, chgrp GROUP {path} and chmod 660 {path}, then join that group "
        "(docker: --device and --group-add)"
    )


def _known(sysfs: Path) -> str:
    return ", ".join(device.name for device in reader.dax_devices(sysfs)) or "none"

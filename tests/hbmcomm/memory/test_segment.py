"""A shared segment is found by whoever may, by no one else, and no other file is opened for it."""

import ctypes
import errno
import fcntl
import os
import subprocess
import sys
from pathlib import Path

import pytest

from hbmcomm.memory import kernel, segment, shm_folder
from hbmcomm.memory.segment import HUGE_PAGE, Backing, Locator
from tests.left import own_files
from tests.second_user import SecondUser

pytestmark = pytest.mark.alone

BYTES = 64 * HUGE_PAGE


def open_files() -> set[str]:
    return {path.name for path in Path("/proc/self/fd").iterdir()}


def locator_of(descriptor: int, name: str) -> Locator:
    """What a process would say of a file that it has open."""
    state = os.fstat(descriptor)
    path = f"/proc/{os.getpid()}/fd/{descriptor}"
    return Locator("memfd", path, state.st_dev, state.st_ino, name, BYTES)


@pytest.mark.parametrize("backing", segment.BACKINGS)
def test_what_one_writes_the_other_reads(backing: Backing) -> None:
    made = segment.create(backing, BYTES)
    attached = segment.attach(made.locator)
    made.unlink()
    assert attached.address != made.address
    assert made.address % HUGE_PAGE == attached.address % HUGE_PAGE == 0
    ctypes.memset(made.address, 7, 5000)
    assert ctypes.string_at(attached.address, 5001) == b"\7" * 5000 + b"\0"


def test_a_hidden_segment_has_no_name_left() -> None:
    with own_files("hbmcomm.*") as files:
        made = segment.create("shm", BYTES)
        assert Path(made.locator.path).stat().st_mode & 0o777 == 0o600
        made.unlink()
        made.unlink()
        assert not files()
    with pytest.raises(FileNotFoundError):
        segment.attach(made.locator)


def test_only_its_maker_keeps_the_file_open_and_all_goes_with_the_object() -> None:
    before = open_files()
    made = segment.create("memfd", BYTES)
    attached = segment.attach(made.locator)
    assert len(open_files()) == len(before) + 1
    assert os.fstat(made.descriptor).st_blocks == 0
    addresses = made.address, attached.address
    del made, attached
    assert open_files() == before
    maps = Path("/proc/self/maps").read_text()
    assert not any(f"{address:x}-" in maps for address in addresses)


def test_no_process_can_cut_a_segment_short() -> None:
    made = segment.create("memfd", BYTES)
    cut = f"import os; os.truncate({made.locator.path!r}, 0)"
    other = subprocess.run([sys.executable, "-c", cut], capture_output=True, text=True, check=False)
    assert "PermissionError" in other.stderr
    for nbytes in (0, 2 * BYTES):
        with pytest.raises(PermissionError):
            os.ftruncate(made.descriptor, nbytes)
    with pytest.raises(PermissionError):  # nor seal it against writing
        fcntl.fcntl(made.descriptor, 1033, 8)
    ctypes.memset(made.address + BYTES - 1, 1, 1)


def test_a_file_that_could_be_cut_short_is_not_mapped() -> None:
    name = "hbmcomm.0123456789abcdef"
    descriptor = os.memfd_create(name)
    os.ftruncate(descriptor, BYTES)
    before = open_files()
    with pytest.raises(FileNotFoundError, match="cut short"):
        segment.attach(locator_of(descriptor, name))
    assert open_files() == before
    os.close(descriptor)


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"inode": 0}, "another file"),
        ({"device": 99}, "another file"),
        ({"name": "hbmcomm.0123456789abcdef"}, "another file"),
        ({"nbytes": 2 * BYTES}, "134,217,728 bytes, not 268,435,456"),
        ({"nbytes": BYTES - HUGE_PAGE}, "bytes, not"),
        ({"nbytes": 0}, "is not a segment"),
        ({"nbytes": BYTES + 1}, "is not a segment"),
        ({"nbytes": 2**70}, "is not a segment"),
        ({"path": "/dev/mem"}, "is not a segment"),
        ({"path": "/proc/self/fd/0"}, "is not a segment"),
        ({"path": "/proc/1/fd/../environ"}, "is not a segment"),
        ({"path": "/dev/shm/hbmcomm.0123456789abcdef"}, "is not a segment"),
        ({"backing": "shm"}, "is not a segment"),
        ({"backing": "tcp"}, "is not a segment"),
        ({"name": "x"}, "is not a segment"),
        ({"backing": "shm", "name": "../tmp/x", "path": "/dev/shm/../tmp/x"}, "is not a segment"),
    ],
)
def test_a_wrong_notice_is_refused(change: dict[str, object], why: str) -> None:
    made = segment.create("memfd", BYTES)
    before = open_files()
    with pytest.raises(FileNotFoundError, match=why):
        segment.attach(made.locator._replace(**change))  # type: ignore[arg-type]
    assert open_files() == before
    assert segment.attach(made.locator).nbytes == BYTES


def test_nothing_but_the_right_file_is_opened(tmp_path: Path) -> None:
    """A FIFO would wait for a reader for ever, and a device would do what devices do."""
    os.mkfifo(tmp_path / "fifo")
    name = "hbmcomm.0123456789abcdef"
    (tmp_path / name).write_bytes(bytes(100))
    descriptors = [
        os.open(tmp_path / "fifo", os.O_RDWR),
        os.open(tmp_path / name, os.O_RDWR),
        os.open("/dev/zero", os.O_RDWR),
        os.open(tmp_path, os.O_RDONLY),
    ]
    for descriptor in descriptors:
        with pytest.raises(FileNotFoundError, match="another file"):
            segment.attach(locator_of(descriptor, name))
        os.close(descriptor)


def test_a_link_in_dev_shm_is_not_followed(tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_bytes(b"precious")
    os.truncate(victim, BYTES)
    state = victim.stat()
    link = shm_folder.DEFAULT / f"hbmcomm.{os.urandom(8).hex()}"
    locator = Locator("shm", str(link), state.st_dev, state.st_ino, link.name, BYTES)
    link.symlink_to(victim)
    try:
        with pytest.raises(OSError):
            segment.attach(locator)
    finally:
        link.unlink()
    assert victim.read_bytes()[:8] == b"precious"


def test_a_segment_of_another_user_is_not_mapped(second_user: SecondUser) -> None:
    """Root could open it, and its owner would write into it."""
    made = segment.create("shm", BYTES)
    try:
        os.chown(made.locator.path, second_user.uid, second_user.gid)
        with pytest.raises(PermissionError, match=f"belongs to user {second_user.uid}, not 0"):
            segment.attach(made.locator)
    finally:
        made.unlink()


def test_no_two_segments_have_one_name() -> None:
    assert len({segment.create("memfd", BYTES).locator.name for _ in range(3)}) == 3


@pytest.mark.parametrize("backing", segment.BACKINGS)
def test_what_cannot_be_made_leaves_nothing_open(
    backing: Backing, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = open_files()
    with own_files("hbmcomm.*") as files:

        def refuse(*_arguments: object) -> None:
            raise OSError(errno.EFBIG, "File too large")

        with pytest.raises(OSError):
            segment.create(backing, 2**61)
        with monkeypatch.context() as patch:
            patch.setattr(os, "ftruncate", refuse)
            with pytest.raises(OSError, match="too large"):
                segment.create(backing, BYTES)
        monkeypatch.setattr(kernel, "map_shared", refuse)
        with pytest.raises(OSError, match="too large"):
            segment.create(backing, BYTES)
        assert not files()
    assert open_files() == before


@pytest.mark.parametrize(
    "missing", ["memfd_create", "MFD_CLOEXEC", "MFD_ALLOW_SEALING", "O_PATH", "F_GET_SEALS"]
)
def test_pythons_for_old_systems_make_and_find_segments(
    missing: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for module in (os, fcntl):
        monkeypatch.delattr(module, missing, raising=False)
    made = segment.create("memfd", BYTES)
    assert segment.attach(made.locator).nbytes == BYTES


def test_a_kernel_that_does_not_know_a_flag_makes_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    call, flags = kernel.call, []

    def old(name: str, *arguments: object) -> int:
        if name == "memfd_create":
            flags.append(int(arguments[1]))  # type: ignore[call-overload]
            if flags[-1] & 8:
                raise OSError(errno.EINVAL, "Invalid argument")
        return call(name, *arguments)

    monkeypatch.setattr(kernel, "call", old)
    assert segment.attach(segment.create("memfd", BYTES).locator).nbytes == BYTES
    assert flags == [11, 3]

"""HBMCOMM_SHM: ranks share memory in a folder of one mount, which no other user can change."""

import os
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pytest

from hbmcomm import HbmcommError, OutOfMemory
from hbmcomm.memory import kernel, segment, shm_folder
from hbmcomm.memory.kinds import resolve
from hbmcomm.memory.local_segment import LocalSegment
from hbmcomm.memory.segment import HUGE_PAGE
from tests.second_user import SecondUser
from tests.starting import Start

APART = Path(__file__).parent / "ranks/apart.py"
MESSAGES_BY_TCP = {
    "OMPI_MCA_btl": "tcp,self",
    "OMPI_MCA_btl_tcp_if_include": "lo",
    "OMPI_MCA_pml": "ob1",
}
BYTES = 8 * HUGE_PAGE


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """A folder of this user's in memory, which HBMCOMM_SHM names; the test must leave it empty."""
    path = shm_folder.DEFAULT / f"hbmcomm-test-{os.getpid()}"
    path.mkdir(mode=0o700)
    monkeypatch.setenv("HBMCOMM_SHM", str(path))
    try:
        yield path
        assert not list(path.iterdir()), "no file may stay"
    finally:
        for left in path.iterdir():
            left.unlink()
        path.rmdir()


Apart = Callable[..., str]


@pytest.fixture
def apart(mpirun: Start, folder: Path, tmp_path: Path) -> Apart:
    """apart(act, mode): what two ranks print that have only the folder in common."""
    words = ["unshare", "--mount", "--pid", "--fork", "mount", "-t", "tmpfs", "tmpfs", tmp_path]
    if subprocess.run(words, capture_output=True, check=False).returncode:
        pytest.skip("this user may not make namespaces")

    def run(act: str, mode: str, **how: object) -> str:
        env = {**MESSAGES_BY_TCP, "HBMCOMM_SHM": ""}
        given = [str(folder), act, mode, str(tmp_path / "place")]
        return mpirun(APART, 2, *given, env=env, **how).output

    return run


@pytest.mark.ranks
def test_ranks_with_one_folder_in_common_share_memory_by_it_alone(apart: Apart) -> None:
    seen = apart("share", "named")
    assert all(f"rank {rank}: direct, {{0: 4194304}}" in seen for rank in range(2)), seen


@pytest.mark.ranks
@pytest.mark.parametrize(("mode", "act"), [("unnamed", "fall back"), ("one", "share")])
def test_without_the_variable_on_all_ranks_they_learn_of_it_and_auto_takes_mpi(
    apart: Apart, mode: str, act: str
) -> None:
    seen = apart(act, mode)
    assert seen.count("refused: the ranks cannot share memory") == 2
    assert seen.count("mount one folder for both ranks, and name it by HBMCOMM_SHM") == 2
    assert ("memfd: rank 0: [Errno 95] HBMCOMM_SHM is set" in seen) == (mode == "one")
    assert seen.count(": mpi, {0: 4194304}") == 2 * (act == "fall back")


@pytest.mark.ranks
def test_ranks_of_which_one_may_not_read_the_others_private_memory_leave_it_alone(
    apart: Apart,
) -> None:
    assert apart("reach", "unnamed").count("all came") == 2


@pytest.mark.ranks
def test_a_killed_rank_is_noticed_and_leaves_nothing(apart: Apart) -> None:
    seen = apart("die", "named", code=None, survivors=True)
    # Open MPI's TCP may see the end of rank 1 first, and ends rank 0 then.
    assert "rank 0: rank 1 died; the communicator is unusable now" in seen or (
        "An error occurred in Socket closed" in seen
    )


@pytest.mark.ranks
def test_a_rank_killed_before_others_have_its_file_leaves_that_and_no_more(
    apart: Apart, folder: Path
) -> None:
    """A named file cannot end with its process, in /dev/shm neither: docs/transport.md says so."""
    apart("die early", "named", code=None)
    left = list(folder.iterdir())
    assert len(left) <= 4  # the launcher ends the other rank by SIGTERM or SIGKILL
    for path in left:
        assert path.name.startswith("hbmcomm.") and path.stat().st_mode & 0o777 == 0o600
        path.unlink()


def test_the_memory_is_in_the_folder_and_its_name_goes(folder: Path) -> None:
    with pytest.raises(OSError, match="HBMCOMM_SHM is set"):
        segment.create("memfd", BYTES)
    made = segment.create("shm", BYTES)
    assert [path.name for path in folder.iterdir()] == [made.locator.name]
    pool = LocalSegment(resolve("regular"), made)
    seen = segment.attach(made.locator)
    pool.unlink()
    array = np.asarray(pool.allocate(pool.kind, HUGE_PAGE))
    array[:] = 7
    assert seen.address != pool.address and kernel.node_of(seen.address) in pool.kind.nodes


def test_other_ranks_may_have_the_folder_elsewhere(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    made = segment.create("shm", BYTES)
    (tmp_path / "there").symlink_to(folder)
    monkeypatch.setenv("HBMCOMM_SHM", str(tmp_path / "there"))
    assert segment.attach(made.locator).nbytes == BYTES
    monkeypatch.delenv("HBMCOMM_SHM")
    with pytest.raises(FileNotFoundError, match="mount one folder for both ranks, and name it by"):
        segment.attach(made.locator)
    made.unlink()


def test_a_full_folder_is_an_error_that_names_it(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pool = LocalSegment(resolve("regular"), segment.create("shm", BYTES))
    pool.unlink()
    monkeypatch.setattr(shm_folder, "free_bytes", lambda: 3)
    with pytest.raises(OutOfMemory, match=rf"{folder} has 3 left; enlarge it \(mount -o remount"):
        pool.allocate(pool.kind, HUGE_PAGE)


def refusal(how: str) -> None:
    """Neither making nor finding a segment opens a file in the folder."""
    fake = segment.Locator("shm", "/x/hbmcomm.0123456789abcdef", 1, 1, "hbmcomm." + 16 * "0", BYTES)
    fake = fake._replace(path=f"/x/{fake.name}")
    for act in (lambda: segment.create("shm", BYTES), lambda: segment.attach(fake)):
        with pytest.raises(HbmcommError, match=f"HBMCOMM_SHM=.*: .*{how}.*; take a folder of your"):
            act()


@pytest.mark.parametrize("mode", [0o777, 0o770, 0o722])
def test_a_folder_in_which_others_could_replace_files_is_refused(folder: Path, mode: int) -> None:
    folder.chmod(mode)
    refusal(f"its mode {mode:o} lets other users replace")
    folder.chmod(mode | 0o1000)  # only its owner replaces a file then
    segment.create("shm", BYTES).unlink()


def test_a_folder_of_another_user_is_refused(folder: Path, second_user: SecondUser) -> None:
    os.chown(folder, second_user.uid, second_user.gid)
    refusal(f"belongs to user {second_user.uid}, not to user 0 or root")


def test_another_user_can_neither_read_nor_replace_a_file(
    folder: Path, second_user: SecondUser
) -> None:
    folder.chmod(0o1777)
    made = segment.create("shm", BYTES)
    path = made.locator.path
    for words in (["cat", path], ["rm", "-f", path], ["mv", path, f"{path}.old"]):
        assert second_user.run(words).returncode
    assert Path(path).stat().st_ino == made.locator.inode
    made.unlink()


@pytest.mark.parametrize("name", ["a file", "nothing", "relative", "/proc", "/sys"])
def test_what_is_no_folder_in_memory_is_refused(
    name: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "a file").touch()
    monkeypatch.chdir(tmp_path)
    why = {
        "a file": "cannot be opened .Not a directory",
        "nothing": "cannot be opened .No such file",
        "relative": "no absolute path",
        "/proc": r"neither on a tmpfs nor on a hugetlbfs \(type 0x9fa0\)",
        "/sys": r"neither on a tmpfs nor on a hugetlbfs \(type 0x62656572\)",
    }
    if name == "relative":
        (tmp_path / name).mkdir()
    monkeypatch.setenv("HBMCOMM_SHM", name if name == "relative" else str(tmp_path / name))
    refusal(why[name])


def test_huge_pages_too_large_for_a_segment_are_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(kernel, "file_system", lambda _: (0x958458F6, 2**30))
    refusal("its pages have 1,073,741,824 bytes; mount a hugetlbfs with pagesize=2M")


def test_a_folder_without_files_left_is_refused(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = os.open

    def full(path: object, flags: int, *rest: int, **more: int) -> int:
        if flags & os.O_CREAT:
            raise OSError(28, "No space left on device")
        return real(path, flags, *rest, **more)  # type: ignore[call-overload,no-any-return]

    monkeypatch.setattr(os, "open", full)
    with pytest.raises(HbmcommError, match=r"no file can be made there \(No space left"):
        segment.create("shm", BYTES)

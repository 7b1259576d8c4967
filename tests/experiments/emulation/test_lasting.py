"""./inv hosts: sets that outlive the command that makes them, until they are ended."""

import contextlib
import os
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.emulation import keepers, lasting
from experiments.emulation.emulated_hosts import Hosts, up
from experiments.emulation.host_plan import Plan
from experiments.emulation.keepers import HostsRefused
from experiments.processes import tracking
from tests.awaiting import wait_for
from tests.starting import MakeHosts

ROOT = Path(__file__).parents[3]
NAME = f"test-{os.getpid()}"


def inv(*words: str) -> str:
    """What a command prints, in a process of its own."""
    command = [sys.executable, "-m", "invoke", "hosts", *words, "--name", NAME]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    return done.stdout


@pytest.fixture(scope="module")
def lasting_hosts() -> Iterator[Hosts]:
    """Two hosts that another process made, which has ended; their last test ends them."""
    try:
        with up(1):
            pass
    except HostsRefused as refused:
        pytest.skip(str(refused))
    assert "100mbit" in inv("up", "2", "--rate", "100mbit")
    made = lasting.named(NAME)
    try:
        yield made
    finally:
        made.end()


def test_a_process_that_calls_itself_a_host_is_none(
    lasting_hosts: Hosts, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It could take the place of a host: what is run there would find that process's files."""
    claims = (f"{NAME}/n1", f"{NAME}/n3", "default/n1")
    words = [*("unshare", "--pid", "--mount-proc", "--fork", "--kill-child"), "sleep", "600"]
    with contextlib.ExitStack() as stack:
        for claim in claims:
            variables = os.environ | {keepers.VARIABLE: claim}
            process = stack.enter_context(subprocess.Popen(words, env=variables))
            stack.callback(process.kill)
        carried = lambda: list(tracking.carrying(keepers.VARIABLE).values())  # noqa: E731
        wait_for(lambda: all(carried().count(claim) >= 2 for claim in claims[1:]), "claims")
        sets = lasting.running()
        assert sets[NAME].enter("n1") == lasting_hosts.enter("n1")
        assert (sets[NAME].names, "default" in sets) == (["n1", "n2"], False)
    records = shutil.copytree(keepers.RECORDS, tmp_path / "records")
    monkeypatch.setattr(keepers, "RECORDS", records)
    assert NAME in keepers.all_found()
    for mode, owner in ((0o700, 1), (0o777, 0)):  # another user could have written them
        records.chmod(mode)
        os.chown(records, owner, owner)
        assert keepers.all_found() == {}


@pytest.mark.ranks
def test_a_job_runs_on_them_from_this_folder(lasting_hosts: Hosts) -> None:
    line = "sh -c 'echo $(hostname) $(basename $PWD)'"
    output = inv("job", "--ranks", "3", "--line", line)
    assert sorted(output.split("\n")[:3]) == [f"{name} {ROOT.name}" for name in ("n1", "n1", "n2")]


def test_hosts_stay_are_seen_and_are_ended(lasting_hosts: Hosts) -> None:
    assert lasting_hosts.names == ["n1", "n2"]
    with pytest.raises(HostsRefused, match=f"up as {NAME} already; end them"):
        lasting.up(Plan(1), NAME)
    daemon = [*lasting_hosts.enter("n1"), "sh", "-c", "setsid sleep 1000 > /dev/null 2>&1 &"]
    subprocess.run(daemon, check=True)
    lasting_hosts.slow("n1", "10mbit")
    lasting_hosts.cut("n2")
    rows = [line.split() for line in lasting.to_table({NAME: lasting_hosts}).splitlines()]
    assert [(*row[1:2], *row[3:5], row[7]) for row in rows[1:]] == [
        ("n1", "10mbit", "-", "1"),
        ("n2", "cut", "-", "0"),
    ]
    inv("down")
    assert NAME not in lasting.running()
    assert lasting_hosts.processes("n1") == set()
    with pytest.raises(HostsRefused, match=f"no hosts are up as {NAME}"):
        lasting.named(NAME)


def test_nothing_is_left_of_hosts_whose_making_is_killed(hosts: MakeHosts) -> None:
    hosts(1)  # or skip
    name = f"{NAME}-killed"
    command = [sys.executable, "-m", "invoke", "hosts", "up", "40", "--name", name]
    making = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.DEVNULL)
    deadline = time.monotonic() + 60
    try:
        # all hosts and the switch, not yet linked
        while len(keepers.all_found().get(name, {})) < 41:
            assert making.poll() is None and time.monotonic() < deadline
    finally:
        making.kill()
    making.wait()
    wait_for(lambda: name not in keepers.all_found(), "end of the hosts", 60)

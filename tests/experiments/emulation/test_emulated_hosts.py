"""Hosts that are up: what they share, what their links carry, and that nothing of them stays."""

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from experiments.emulation import keepers, lasting
from experiments.emulation.emulated_hosts import Hosts, up
from experiments.emulation.keepers import HostsRefused
from experiments.model.environment import MPIS
from tests.awaiting import alive, wait_for
from tests.starting import MakeHosts, Start

RANKS = Path(__file__).parent / "ranks" / "traffic.py"
STREAM = RANKS.with_name("stream.py")
MIB = 2**20
OWN = f"hbmcomm-own-{os.getpid()}"
one_mpi_in_ci = pytest.mark.parametrize(
    "mpi", [pytest.param(mpi, marks=[pytest.mark.rare] * (mpi != "openmpi")) for mpi in MPIS]
)
PATIENCE = 20.0  # seconds


def on(hosts: Hosts, name: str, line: str) -> str:
    """What a shell line prints on a host."""
    words = [*hosts.enter(name), "sh", "-c", line]
    return subprocess.run(words, capture_output=True, text=True, check=True).stdout


def said(output: str) -> list[str]:
    """What ranks printed, in their order."""
    return sorted(re.findall(r"rank \d+ on n\d+: [^\n]+", output))


def test_each_host_has_a_name_a_network_and_memory_of_its_own(hosts: MakeHosts) -> None:
    made = hosts(2)
    for name in made.names:
        on(made, name, f"echo {name} > /dev/shm/{OWN}; ipcmk -M 64")
    for name in made.names:
        assert on(made, name, f"hostname; cat /dev/shm/{OWN}") == f"{name}\n{name}\n"
    ids = [on(made, name, "ipcs -m").count("0x") for name in (*made.names, "ctl")]
    assert ids == [1, 1, 0]
    known = on(made, "n1", "getent hosts n2 ctl")
    assert " ".join(known.split()) == "10.99.0.2 n2 10.99.0.254 ctl"
    assert not Path("/dev/shm", OWN).exists()
    assert on(made, "ctl", "ls /dev/shm") == ""
    bound = "unshare --mount sh -c 'mount --bind /etc/hosts /etc/resolv.conf; cat /etc/resolv.conf'"
    assert "10.99.0.2 n2" in on(made, "n1", bound), "as a container binds the names of hosts"


@pytest.mark.ranks
@one_mpi_in_ci
def test_a_broadcast_between_hosts_crosses_each_link_once(
    hosts: MakeHosts, mpirun_on: Start, mpi: str
) -> None:
    made = hosts(2)
    ended = mpirun_on(made, made.packed(2), RANKS, str(8 * MIB), mpi=mpi)
    there = ["n1", "n1", "n2", "n2"]
    assert said(ended.output) == [
        f"rank {rank} on {name}: 4 2 {8 * MIB}" for rank, name in enumerate(there)
    ]
    sent, received = made.traffic("n1").sent, made.traffic("n2").received
    most = 2.2 if mpi == "impi" else 1.2  # its ranks of n2 may both receive from n1
    assert 8 * MIB <= sent <= most * 8 * MIB and 8 * MIB <= received <= most * 8 * MIB


@pytest.mark.ranks
@one_mpi_in_ci
def test_ranks_of_a_host_share_memory_and_use_no_link(
    hosts: MakeHosts, mpirun_on: Start, mpi: str
) -> None:
    made = hosts(2)
    ended = mpirun_on(made, made.in_turn(4), RANKS, "within", str(4 * MIB), mpi=mpi)
    assert said(ended.output) == [
        f"rank {rank} on n{1 + rank % 2}: direct 2 2 2" for rank in range(4)
    ]
    assert all(sum(made.traffic(name)) < MIB for name in made.names)


@pytest.mark.ranks
def test_hosts_may_have_different_numbers_of_ranks(hosts: MakeHosts, mpirun_on: Start) -> None:
    made = hosts(3)
    ended = mpirun_on(made, made.packed(1, 2, 1), RANKS, "1")
    assert said(ended.output) == [
        "rank 0 on n1: 4 1 1",
        "rank 1 on n2: 4 2 1",
        "rank 2 on n2: 4 2 1",
        "rank 3 on n3: 4 1 1",
    ]


@pytest.fixture(params=[("200mbit", "")])
def streaming(hosts: MakeHosts, request: pytest.FixtureRequest) -> Iterator[Hosts]:
    """Two hosts with links of a rate and a delay; n1 sends to n2 as fast as it can."""
    rate, delay = request.param
    made = hosts(2, rate=rate, delay=delay)
    program = [sys.executable, str(STREAM)]
    with (
        subprocess.Popen([*made.enter("n2"), *program, "take"], stdout=subprocess.PIPE) as taker,
        subprocess.Popen([*made.enter("n1"), *program, "give", "n2"]),
    ):
        assert taker.stdout and taker.stdout.readline() == b"ready\n"
        yield made
        made.end()


def rate(hosts: Hosts, seconds: float = 0.5) -> float:
    """Mbit/s that n2 receives."""
    before, began = hosts.traffic("n2").received, time.monotonic()
    time.sleep(seconds)
    return (hosts.traffic("n2").received - before) * 8e-6 / (time.monotonic() - began)


def test_a_link_is_slowed_cut_and_mended_while_data_flow(streaming: Hosts) -> None:
    wait_for(lambda: rate(streaming, 0.2) > 50, "flow", PATIENCE)
    assert rate(streaming) < 1.1 * 200
    streaming.slow("n2", "20mbit")
    time.sleep(0.1)  # what was in the queue of the faster link
    assert 0 < rate(streaming, 1.0) < 1.2 * 20
    streaming.cut("n2")
    time.sleep(0.1)
    assert rate(streaming) == 0
    streaming.slow("n2", "200mbit")
    streaming.mend("n2")
    wait_for(lambda: rate(streaming, 0.2) > 50, "flow after the cut", PATIENCE)


@pytest.mark.parametrize("streaming", [("1gbit", "1ms")], indirect=True)
def test_a_link_with_a_delay_passes_many_segments_at_once(streaming: Hosts) -> None:
    """One by one they would cost so much CPU that ranks beside them lose packets."""
    wait_for(lambda: streaming.traffic("n2").received > 16 * MIB, "flow", PATIENCE)
    (link,) = json.loads(on(streaming, "n2", "ip -json -stats link show eth0"))
    received = link["stats64"]["rx"]
    assert received["bytes"] / received["packets"] > 4 * 1500


ANSWER = """
import socket
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.bind(("", 7))
end.settimeout(20)
print("ready", flush=True)
for _ in range(20):
    end.sendto(*end.recvfrom(99))
"""
ASK = """
import socket, time
end = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
end.settimeout(20)
times = []
for _ in range(20):
    began = time.monotonic()
    end.sendto(b"?", ("n2", 7))
    end.recv(99)
    times.append(time.monotonic() - began)
print(min(times))
"""


def round_trip(hosts: Hosts) -> float:
    """The shortest of some between n1 and n2, in seconds."""
    words = [*hosts.enter("n2"), sys.executable, "-c", ANSWER]
    with subprocess.Popen(words, stdout=subprocess.PIPE) as answering:
        assert answering.stdout and answering.stdout.readline() == b"ready\n"
        return float(on(hosts, "n1", f"{sys.executable} -c '{ASK}'"))


def test_links_hold_what_passes_for_their_delay(hosts: MakeHosts) -> None:
    """A message from n1 to n2 passes two links, and its answer as well."""
    near, far = hosts(2), hosts(2, delay="5ms")
    assert round_trip(near) < 4 * 5e-3 <= round_trip(far) < 2 * 4 * 5e-3
    assert [far.delay(name) for name in far.names] == [5e-3, 5e-3]
    assert far.processes("n1") == set() and far.traffic("n1").sent > 0
    assert " 5ms " in lasting.to_table({"far": far})
    far.slow("n1", "10mbit")
    far.cut("n1")
    far.mend("n1")
    assert far.rate("n1") == "10mbit" and round_trip(far) >= 4 * 5e-3
    far.kill("n1")
    with pytest.raises(HostsRefused, match="no link to n1"):
        far.traffic("n1")


DELAYED = """
from experiments.emulation.emulated_hosts import up
with up(2, delay="1ms") as hosts:
    print(hosts.delay("n1"))
"""


def test_links_have_a_delay_where_root_may_not_go_before_others(hosts: MakeHosts) -> None:
    hosts(1)  # or skip
    words = ["setpriv", "--bounding-set=-sys_nice", "--inh-caps=-sys_nice", sys.executable]
    done = subprocess.run([*words, "-c", DELAYED], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout) == (0, "0.001\n"), done.stderr


def test_a_host_loses_its_power_and_the_others_do_not(hosts: MakeHosts) -> None:
    made = hosts(2)
    for name in made.names:
        on(made, name, "setsid sleep 1000 > /dev/null 2>&1 &")
        assert len(made.processes(name)) == 1
    (there,) = made.processes("n1")
    made.kill("n1")
    wait_for(lambda: not alive(there), "end of its process", PATIENCE)
    assert len(made.processes("n2")) == 1
    with pytest.raises(HostsRefused, match="no link to n1"):  # the kernel takes it down later
        wait_for(lambda: made.traffic("n1") is None, "end of its link", PATIENCE)


DRIVER = """
import subprocess, sys, time
from experiments.emulation.emulated_hosts import up
with up(2) as hosts:
    for name in (*hosts.names, "ctl"):  # a daemon on each
        subprocess.run([*hosts.enter(name), "sh", "-c", "setsid sleep 1000 >/dev/null 2>&1 &"])
    print(hosts.name, flush=True)
    time.sleep(1000)
"""


@pytest.mark.alone
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT])
def test_nothing_of_a_killed_driver_stays(hosts: MakeHosts, number: signal.Signals) -> None:
    hosts(1)  # or skip
    before = left()
    with subprocess.Popen(
        [sys.executable, "-c", DRIVER], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as driver:
        assert driver.stdout
        name = driver.stdout.readline().strip()
        made = Hosts(name, keepers.all_found()[name])
        assert made.names == ["n1", "n2"]
        assert all(len(made.processes(host)) == 1 for host in made.names)
        own = left() - before
        assert own
        driver.send_signal(number)
    wait_for(lambda: not own & left(), "end of all processes", PATIENCE)
    assert name not in keepers.all_found()


def left() -> set[str]:
    """Network namespaces with processes in them, mounts that this process sees, names of ip."""
    traces = set()
    for path in Path("/proc").glob("[0-9]*/ns/net"):
        with contextlib.suppress(OSError):
            traces.add(str(path.readlink()))
    names = Path("/run/netns")
    traces |= {str(namespace) for namespace in names.iterdir()} if names.is_dir() else set()
    return traces | set(Path("/proc/self/mountinfo").read_text("utf-8").splitlines())


def test_without_root_the_message_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(HostsRefused, match=r"root alone makes.*user 1000.*as root"), up(2):
        pass

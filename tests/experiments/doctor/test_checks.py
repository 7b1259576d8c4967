import os

import pytest

from experiments.doctor import checks

CPU = "sys/devices/system/cpu"
GOVERNOR = f"{CPU}/cpu0/cpufreq/scaling_governor"
THP = "sys/kernel/mm/transparent_hugepage/enabled"
YAMA, BALANCING = "proc/sys/kernel/yama/ptrace_scope", "proc/sys/kernel/numa_balancing"
SUDO = "" if os.geteuid() == 0 else "sudo "


@pytest.fixture
def machine(tmp_path):
    """A machine of which only what a test writes is known."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
        return tmp_path

    return write


def test_a_machine_that_tells_nothing_still_gets_an_answer(tmp_path):
    for check in (
        *(checks.cores, checks.privileges, checks.seccomp, checks.ptrace_scope),
        *(checks.shared_memory, checks.huge_pages, checks.interleave_weights),
        *(checks.numa_balancing, checks.governor, checks.turbo),
    ):
        finding = check(tmp_path / "empty")
        assert finding.name and finding.value, check


def test_memory_that_ranks_cannot_share_without_a_name_is_told(monkeypatch):
    assert checks.nameless_memory().ok

    def refuse(name):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "memfd_create", refuse)
    finding = checks.nameless_memory()
    assert finding.value == "refused (Operation not permitted)"
    assert "/dev/shm" in finding.lack


@pytest.mark.parametrize(
    ("check", "path", "good", "bad", "shown", "remedy"),
    [
        (checks.ptrace_scope, YAMA, "0", "1", "1", "sysctl -w kernel.yama.ptrace_scope=0"),
        (checks.numa_balancing, BALANCING, "0", "1", "on", "sysctl -w kernel.numa_balancing=0"),
        (checks.huge_pages, THP, "[madvise] never", "madvise [never]", "never", "madvise"),
        (checks.governor, GOVERNOR, "performance", "powersave", "powersave", "performance"),
        (checks.turbo, f"{CPU}/intel_pstate/no_turbo", "1", "0", "on", "1"),
        (checks.turbo, f"{CPU}/cpufreq/boost", "0", "1", "on", "0"),
    ],
)
def test_a_setting_that_disturbs_is_a_lack_with_its_command(
    machine, check, path, good, bad, shown, remedy
):
    """The remedy is a command, or the value that is written for all CPUs."""
    assert check(machine(path, good)).ok
    finding = check(machine(path, bad))
    assert (finding.value, finding.ok) == (shown, False)
    written = f"echo {remedy} | {SUDO}tee /{path.replace('cpu0', 'cpu*')}"
    assert finding.remedy == (f"{SUDO}{remedy}" if "sysctl" in remedy else written)


def test_capabilities_and_seccomp_are_named(machine):
    root = machine("proc/self/status", "CapEff:\t0000000000880000\nSeccomp:\t2")
    assert checks.privileges(root).value.endswith("capabilities SYS_PTRACE, SYS_NICE")
    assert checks.seccomp(root).value == "filtered"


def test_a_package_that_is_not_there_is_a_lack_with_its_command():
    finding = checks.distribution("x", "no-such-package-of-hbmcomm")
    assert finding.ok is False
    assert finding.remedy == "pip install no-such-package-of-hbmcomm"


def test_a_compiler_that_is_not_there_is_a_lack_with_its_command(monkeypatch):
    assert checks.compiler().ok
    monkeypatch.setenv("CC", "no-such-compiler-of-hbmcomm")
    finding = checks.compiler()
    assert finding.ok is False
    assert finding.remedy == f"{SUDO}apt-get install -y gcc libc6-dev"


def test_the_mpi_is_the_one_that_mpi4py_loads():
    finding = checks.mpi()
    assert finding.ok
    assert any(name in finding.value for name in ("Open MPI", "MPICH", "Intel"))


def test_an_engine_that_does_not_answer_is_not_an_error(monkeypatch):
    monkeypatch.setenv("DOCKER_HOST", "unix:///nowhere/docker.sock")
    assert checks.container_engine().name == "container engine"


def test_the_weights_of_interleaving_are_shown_with_their_origin(machine):
    folder = "sys/kernel/mm/mempolicy/weighted_interleave"
    for node, cpus in enumerate(("0-1", "")):
        root = machine(f"sys/devices/system/node/node{node}/cpulist", cpus)
        meminfo = f"Node {node} MemTotal: 1024 kB"
        machine(f"sys/devices/system/node/node{node}/meminfo", meminfo)
        machine(f"sys/devices/system/node/node{node}/distance", "10 20")
    machine("proc/cpuinfo", "processor : 0")
    assert "needs Linux 6.9" in checks.interleave_weights(root).lack
    machine(f"{folder}/node0", 3)
    machine(f"{folder}/node1", 16)
    finding = checks.interleave_weights(root)
    assert (finding.value, finding.ok) == ("0: 3; 1: 16 (by an administrator, or 1)", True)
    for name in ("auto", "__auto_type"):
        machine(f"{folder}/{name}", "true")
        assert checks.interleave_weights(root).value == "0: 3; 1: 16 (by the kernel from HMAT)"
        machine(f"{folder}/{name}", "false")


def test_a_named_folder_takes_the_place_of_memfd(monkeypatch):
    monkeypatch.setenv("HBMCOMM_SHM", "/mnt/shared")
    assert checks.nameless_memory().value == "not used: HBMCOMM_SHM=/mnt/shared"

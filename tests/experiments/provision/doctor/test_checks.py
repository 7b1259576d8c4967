import os

import pytest

from experiments.provision.doctor import checks

CPU = "sys/devices/system/cpu"
SUDO = "" if os.geteuid() == 0 else "sudo "


@pytest.fixture
def machine(tmp_path):
    """A machine of which only what a test writes is known."""

    def write(path, text):
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(f"{text}\n")
        return tmp_path

    return write


@pytest.mark.parametrize(
    "check",
    [
        checks.cores,
        checks.privileges,
        checks.seccomp,
        checks.ptrace_scope,
        checks.shared_memory,
        checks.huge_pages,
        checks.numa_balancing,
        checks.governor,
        checks.turbo,
    ],
)
def test_a_machine_that_tells_nothing_still_gets_an_answer(check, tmp_path):
    finding = check(tmp_path / "empty")
    assert finding.name
    assert finding.value


def test_yama_in_the_way_of_single_copy_is_a_lack(machine):
    finding = checks.ptrace_scope(machine("proc/sys/kernel/yama/ptrace_scope", "1"))
    assert (finding.value, finding.ok) == ("1", False)
    assert finding.remedy == f"{SUDO}sysctl -w kernel.yama.ptrace_scope=0"


def test_memory_that_ranks_cannot_share_without_a_name_is_told(monkeypatch):
    assert checks.nameless_memory().ok

    def refuse(name):
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(os, "memfd_create", refuse)
    finding = checks.nameless_memory()
    assert finding.value == "refused (Operation not permitted)"
    assert "/dev/shm" in finding.lack


def test_huge_pages_that_are_never_given_are_a_lack(machine):
    path = "sys/kernel/mm/transparent_hugepage/enabled"
    assert checks.huge_pages(machine(path, "always [madvise] never")).ok
    finding = checks.huge_pages(machine(path, "always madvise [never]"))
    assert finding.ok is False
    assert finding.remedy == f"echo madvise | {SUDO}tee /{path}"


def test_a_kernel_that_moves_pages_is_a_lack(machine):
    assert checks.numa_balancing(machine("proc/sys/kernel/numa_balancing", "0")).ok
    assert checks.numa_balancing(machine("proc/sys/kernel/numa_balancing", "1")).ok is False


def test_a_clock_that_follows_the_load_is_a_lack(machine):
    path = f"{CPU}/cpu0/cpufreq/scaling_governor"
    assert checks.governor(machine(path, "performance")).ok
    finding = checks.governor(machine(path, "powersave"))
    assert finding.ok is False
    assert finding.remedy == f"echo performance | {SUDO}tee /{CPU}/cpu*/cpufreq/scaling_governor"


@pytest.mark.parametrize(
    ("path", "off", "on"), [("intel_pstate/no_turbo", "1", "0"), ("cpufreq/boost", "0", "1")]
)
def test_turbo_is_read_from_either_switch(machine, path, off, on):
    assert checks.turbo(machine(f"{CPU}/{path}", off)).ok
    finding = checks.turbo(machine(f"{CPU}/{path}", on))
    assert (finding.value, finding.ok) == ("on", False)
    assert finding.remedy == f"echo {off} | {SUDO}tee /{CPU}/{path}"


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

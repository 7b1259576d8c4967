import os
import shutil

import pytest

from experiments.processes import executables
from experiments.provision import engine, system
from experiments.provision.system import (
    E2FSPROGS,
    EMULATION,
    ENGINE,
    IPTABLES,
    MEMKIND,
    PACKAGES,
    QEMU,
    Package,
)

UNKNOWN = Package("no-such-package-of-hbmcomm", "nothing", "")
root_with_apt = pytest.mark.skipif(
    os.geteuid() != 0 or shutil.which("apt-get") is None, reason="needs root and apt"
)


def test_the_command_installs_without_questions_and_waits_for_another_apt():
    assert " ".join(system.install_command(PACKAGES)) == (
        "apt-get -o DPkg::Lock::Timeout=300 install -y --no-install-recommends "
        "docker.io iptables mmdebstrap libmemkind0"
    )


def test_without_apt_the_answer_names_what_each_package_is_for():
    lacking = system.obstacle((ENGINE, MEMKIND), has_apt=False, is_root=True)
    assert lacking == (
        "missing: docker.io (container engine), libmemkind0 (memory kinds); "
        "this machine has no apt; "
        "to mend it: its own package manager, for: container engine, memory kinds"
    )


def test_without_root_the_answer_is_one_command():
    lacking = system.obstacle((ENGINE, IPTABLES), has_apt=True, is_root=False)
    command = "sudo apt-get install -y --no-install-recommends docker.io iptables"
    assert lacking.endswith(f"; installing needs root; to mend it: {command}")
    assert system.obstacle((ENGINE,), has_apt=True, is_root=True) == ""


def test_what_emulates_machines_is_wanted_only_when_it_is_asked_for(monkeypatch):
    monkeypatch.setattr(engine, "version", lambda: None)
    monkeypatch.setattr(executables, "find", lambda name: None)
    assert not {QEMU, E2FSPROGS} & set(system.missing())
    assert system.missing(EMULATION) == (QEMU, E2FSPROGS)
    assert set(system.missing((*PACKAGES, *EMULATION))) >= {ENGINE, QEMU}
    monkeypatch.setattr(executables, "find", lambda name: f"/usr/bin/{name}")
    assert system.missing(EMULATION) == ()


def test_an_answer_that_is_not_yes_installs_nothing():
    for answer in ("n", "no", "later"):
        lines = []
        lacking = system.install((UNKNOWN,), lines.append, lambda question, word=answer: word)
        assert lines == ["installing with apt: no-such-package-of-hbmcomm (nothing)"]
        assert "; their installation was declined; to mend it: apt-get install" in lacking


@root_with_apt
@pytest.mark.container
def test_what_this_release_does_not_offer_does_not_hold_up_the_rest():
    here = Package("coreutils", "here already", "ls")
    lacking = system.install((UNKNOWN, here), lambda line: None)
    assert lacking.startswith(f"missing: {UNKNOWN.name} (nothing); this release of the distri")


@root_with_apt
@pytest.mark.container
def test_where_an_engine_answers_neither_it_nor_its_networks_are_missing(engine):
    assert not {ENGINE, IPTABLES} & set(system.missing())

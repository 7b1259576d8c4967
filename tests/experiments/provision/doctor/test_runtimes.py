"""What the doctor says of the runtimes beside Docker, on machines with and without them."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from experiments.provision.doctor import runtimes

USERNS = "proc/sys/kernel/apparmor_restrict_unprivileged_userns"


Install = Callable[[str, str], Path]


@pytest.mark.usefixtures("install")
def test_none_of_them_is_missed_as_a_fault_and_each_has_its_command() -> None:
    for check in runtimes.CHECKS:
        finding = check()
        assert (finding.value, finding.ok) == ("not installed", None)
        assert finding.lack
        assert "apt-get install -y" in str(finding.remedy)


def test_versions_are_told_wherever_a_program_says_them(
    install: Install, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("USER", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    install("podman", "echo podman version 4.3.1")
    install("ch-run", '[ -n "$USER" ] && echo 0.31 >&2')
    install("apptainer", "echo apptainer version 1.4.0")
    assert [check().value.split(",")[0] for check in runtimes.CHECKS] == ["4.3.1", "0.31", "1.4.0"]
    assert {check().ok for check in runtimes.CHECKS} == {True}


@pytest.mark.parametrize(("uid", "ok"), [(0, True), (1000, None)])
def test_users_that_may_not_make_namespaces_are_told_the_setting(
    install: Install, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, uid: int, ok: bool | None
) -> None:
    monkeypatch.setattr(os, "geteuid", lambda: uid)
    install("ch-run", "echo 0.31 >&2")
    (tmp_path / USERNS).parent.mkdir(parents=True)
    (tmp_path / USERNS).write_text("1\n")
    finding = runtimes.charliecloud(tmp_path)
    assert finding.ok is ok
    if not ok:
        assert finding.remedy == ("sudo sysctl -w kernel.apparmor_restrict_unprivileged_userns=0")

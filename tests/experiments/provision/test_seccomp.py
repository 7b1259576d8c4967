"""The tuned profile's filter: the engine's default rules, and no more than its additions."""

import hashlib
import json
from pathlib import Path

from experiments.provision import seccomp

SOURCE = "536529b665dd0972c37bfb569f5d4ac8a53592e7b00752bc39ff063ca9864c74"
"""SHA-256 of the file that docker/seccomp/README names as the source."""


def test_the_default_rules_are_those_of_their_source() -> None:
    digest = hashlib.sha256((seccomp.RULES / "default.json").read_bytes())
    assert digest.hexdigest() == SOURCE


def test_the_filter_holds_the_default_and_the_additions_alone() -> None:
    default = json.loads((seccomp.RULES / "default.json").read_text())
    rules = json.loads(seccomp.text())
    assert {**rules, "syscalls": rules["syscalls"][:-1]} == default
    names = sorted(seccomp.additions())
    assert rules["syscalls"][-1] == {"names": names, "action": "SCMP_ACT_ALLOW"}


def test_no_addition_is_allowed_without_it() -> None:
    """Not by another rule either, unless a capability is given."""
    for call in seccomp.additions():
        for rule in json.loads(seccomp.text(without=(call,)))["syscalls"]:
            assert call not in rule["names"] or rule["includes"]["caps"]


def test_docker_is_given_the_text_and_podman_the_path() -> None:
    options = {"security_opt": ["no-new-privileges", seccomp.OPTION], "user": "1:1"}
    docker = seccomp.resolved("docker", options)["security_opt"]
    podman = seccomp.resolved("podman", options)["security_opt"]
    assert docker == ["no-new-privileges", f"seccomp={seccomp.text()}"]
    assert podman == ["no-new-privileges", f"seccomp={seccomp.FILE}"]
    assert seccomp.FILE.read_text() == seccomp.text()
    assert options["security_opt"][1] == seccomp.OPTION
    for unfiltered in ({}, {"security_opt": ["no-new-privileges"]}):
        assert seccomp.resolved("podman", unfiltered) == unfiltered


def test_the_file_is_written_once_and_mended_when_it_differs(tmp_path: Path) -> None:
    file = seccomp.ensure(tmp_path / "new" / "tuned.json")
    written = file.stat().st_mtime_ns
    assert seccomp.ensure(file).stat().st_mtime_ns == written
    file.write_text("{}")
    assert seccomp.ensure(file).read_text() == seccomp.text()
    assert [path.name for path in file.parent.iterdir()] == ["tuned.json"]

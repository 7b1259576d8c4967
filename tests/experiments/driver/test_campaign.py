"""What a request comes to before anything is started: commands, limits, refusals."""

import contextlib
import io
import itertools
import re
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from rich.console import Console

import hbmcomm
from experiments.catalogue import spec
from experiments.console import Stages
from experiments.driver import backends, campaign, inventory, same_machine, watchdog
from experiments.driver.campaign_file import Request
from experiments.emulation import qemu
from experiments.machine import facts
from experiments.model.checkout import ROOT
from experiments.model.errors import Missing, SpecError
from experiments.model.experiment import Experiment
from experiments.processes.files import of_python
from experiments.results.store import ResultsError
from experiments.schedule.blocks import schedule
from tests import stored_launches
from tests.launched import LAUNCH
from tests.refusals import refusal


def asked(environments: str, **flags: Any) -> Experiment:
    """The quick campaign, which emulates HBM where there is none."""
    return spec.restrict(spec.load("quick"), environments=environments, blocks=1, **flags)


def lines(environments: str, out: Path, **flags: Any) -> list[str]:
    planned = campaign.plan(asked(environments, **flags), Request(out))
    return campaign.dry_run(planned, planned.launches)


def test_a_dry_run_in_a_guest_tells_every_command_and_boots_nothing(tmp_path: Path) -> None:
    shown = lines("vm:plain,vm-docker:plain", tmp_path / "out", profiles="tuned", ranks="4")
    assert len(shown) == 2
    for line in shown:
        assert "experiments.emulation.inside_guest --agent plain.agent" in line
        assert "/opt/hbmcomm/bin/mpiexec -n 4" in line
        assert "mpi_yield_when_idle 0" in line  # the machine described has 4 CPUs, whatever ours
    assert sum("docker run --rm" in line for line in shown) == 1
    assert not (tmp_path / "out").exists()


def test_where_hbm_is_on_this_machine_is_not_reported_in_a_guest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MEMKIND_HBW_THRESHOLD", "77")
    assert all("MEMKIND_HBW_THRESHOLD=77" in line for line in lines("host", tmp_path))
    assert not any("MEMKIND" in line for line in lines("vm:knl-snc4-flat", tmp_path))


def test_hbm_is_emulated_in_a_guest_that_has_none(tmp_path: Path) -> None:
    (line,) = lines("vm:plain", tmp_path)
    assert "MEMKIND_HBW_NODES=0 " in line
    (line,) = lines("vm-docker:plain", tmp_path, profiles="tuned")
    assert "--env=MEMKIND_HBW_NODES=0 " in line


def test_ranks_of_an_image_find_what_was_compiled_for_torch(tmp_path: Path) -> None:
    compiled = "TORCH_EXTENSIONS_DIR=/opt/hbmcomm/extensions"
    environments = ("host", "userland", "docker", "vm:plain", "vm-docker:plain")
    for environment, name in itertools.product(environments, ("torch", "quick")):
        experiment = spec.restrict(spec.load(name), environments=environment, blocks=1)
        wanted = name == "torch" and environment != "host"
        planned = campaign.plan(experiment, Request(tmp_path))
        for line in campaign.dry_run(planned, planned.launches):
            assert ("TORCH_EXTENSIONS_DIR" in line) == (compiled in line) == wanted, environment
            if "docker" in environment:
                assert ("hbmcomm:openmpi-torch" in line) == (name == "torch"), environment


def test_a_preview_shows_a_block_of_each_place_and_counts_the_others(tmp_path: Path) -> None:
    flags = {"mpis": "openmpi,mpich", "ranks": "2,4"}
    planned = campaign.plan(asked("host", **flags), Request(tmp_path))
    every = campaign.dry_run(planned, planned.launches)
    assert campaign.preview(planned, planned.launches) == every
    thrice = replace(planned.experiment, launches=replace(planned.experiment.launches, blocks=3))
    planned = campaign.plan(thrice, Request(tmp_path))
    *shown, rest = campaign.preview(planned, planned.launches)
    assert (len(shown), rest) == (
        len(every),
        "# 8 more blocks like one of these 4, in random order",
    )


def test_ranks_are_limited_by_the_machine_described(tmp_path: Path) -> None:
    assert lines("vm:knl-snc4-flat", tmp_path, ranks="64")
    with pytest.raises(SpecError, match=r"65 ranks .* knl-snc4-flat has 8 cores"):
        lines("vm:knl-snc4-flat", tmp_path, ranks="65")


def test_without_qemu_that_is_said_before_anything_is_built(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", "/nowhere")
    out, stages = tmp_path / "out", Stages()
    with pytest.raises(Missing, match=r"apt-get install .*qemu-system-x86"):
        campaign.run(asked("vm:plain"), Request(out), stages)
    assert stages.seconds == {}
    assert not out.exists()


def begin(out: Path, environments: str = "vm:plain", **header: Any) -> list[str]:
    """Results of a campaign that began on this machine; the names of its launches."""
    experiment = asked(environments)
    usual = {"base": "auto", "emulated": {}, "machine": facts.machine()}
    stored_launches.begin(out, experiment, **usual | header)
    return [launch.name for block in schedule(experiment, 1) for launch in block.launches]


def finish(out: Path, launch: str, hashes: dict[str, str]) -> None:
    """A launch that has been measured, with code of these hashes."""
    block, _, arm = launch.partition("-")
    measured = replace(LAUNCH, block=int(block), arm=arm)
    environment = {"versions": {}, "hashes": hashes}
    stored_launches.finish(out, measured, [], {}, environment=environment)


def test_nothing_is_started_for_a_campaign_that_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*asked: object) -> None:
        raise AssertionError("started")

    monkeypatch.setattr(watchdog, "watching", refuse)
    monkeypatch.setattr(backends, "ready", refuse)
    out, text = tmp_path / "out", io.StringIO()
    for name in begin(out, "host,docker"):
        with pytest.raises(AssertionError, match="started"):
            campaign.resume(out, Stages())
        finish(out, name, {})
    assert campaign.resume(out, Stages(Console(file=text))) == []
    assert text.getvalue().startswith(f"the campaign in {out} is complete; ")


def test_a_campaign_is_not_completed_on_another_machine_or_kernel(tmp_path: Path) -> None:
    for part in ("kernel", "cpu"):
        begin(tmp_path / part, "host", machine=facts.machine() | {part: "another"})
        text = rf"this machine is not as it was .*\({part}: another then, .* now\).*another --out"
        assert re.search(text, refusal(ResultsError, campaign.resume, tmp_path / part, Stages()))


def test_a_campaign_is_not_completed_by_other_code(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(backends, "ready", lambda *asked: contextlib.nullcontext(None))
    monkeypatch.setattr(campaign, "_measure", lambda *asked: ["measured"])
    monkeypatch.setattr(same_machine, "refuse_other_guest", lambda *asked: None)
    out = tmp_path / "out"
    launch, *_ = begin(out, "host,docker")
    hashes = {name: of_python(ROOT / name) for name in ("experiments", "hbmcomm")}
    for begun, changed in ((hashes, ""), (hashes | {"hbmcomm": "0" * 16}, "hbmcomm changed since")):
        finish(out, launch, begun)
        with pytest.raises(ResultsError, match=changed) if changed else contextlib.nullcontext():
            assert campaign.resume(out, Stages()) == ["measured"]


def test_a_campaign_is_not_completed_in_another_emulated_machine(tmp_path: Path) -> None:
    other = inventory.described("plain")
    other["node"][0]["mib"] += 128
    begin(tmp_path / "out", emulated={"description": other})
    with pytest.raises(ResultsError, match=r"description of plain has changed .*another --out"):
        campaign.resume(tmp_path / "out", Stages())


@pytest.mark.parametrize(
    ("begun", "shown"),
    [
        ({}, None),
        ({"accelerator": "kvm"}, r"\(accelerator: kvm then, tcg now\)"),
        ({"qemu": "QEMU 6"}, r"\(qemu: QEMU 6 then, QEMU 7 now\)"),
        ({"disk": "older"}, r"\(disk: older then, newer now\)"),
    ],
)
def test_nor_by_another_emulator_or_from_another_disk(
    begun: dict[str, Any], shown: str | None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    guest: Any = SimpleNamespace(accelerator="tcg", disk=SimpleNamespace(id="newer"))
    there = backends.Backends(guests={("plain", "openmpi"): guest})
    monkeypatch.setattr(backends, "ready", lambda *asked: contextlib.nullcontext(there))
    monkeypatch.setattr(qemu, "version", lambda: "QEMU 7")
    monkeypatch.setattr(campaign, "_measure", lambda *asked: ["measured"])
    now = {"accelerator": "tcg", "qemu": "QEMU 7", "disk": "newer", "machine": "plain"}
    out = tmp_path / "out"
    begin(out, emulated={**now, "description": inventory.described("plain"), **begun})
    if shown is None:
        assert campaign.resume(out, Stages()) == ["measured"]
        return
    with pytest.raises(ResultsError, match=rf"plain is not as it was .*{shown}.*another --out"):
        campaign.resume(out, Stages())


@pytest.mark.parametrize(
    ("nodes", "emulated", "left"), [((), False, ()), ((0,), True, ()), ((1,), False, ("hbw_bind",))]
)
def test_policies_of_intel_mpi_are_arms_only_where_it_has_hbm(
    nodes: tuple[int, ...], emulated: bool, left: tuple[str, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    here = hbmcomm.topology()
    finding = replace(here.hbm, nodes=nodes, rule="the rule", emulated=emulated)
    monkeypatch.setattr(hbmcomm, "topology", lambda: replace(here, hbm=finding))
    plain = spec.load("memory")
    policies = replace(plain.launches, mpis=("impi",), hbw_policies=("hbw_bind",))
    asked = replace(plain, launches=policies)
    lacks = backends.lacking(asked, "")
    why = {} if left else {"I_MPI_HBW_POLICY": "Intel MPI ignores it without HBM: the rule"}
    assert lacks == why
    prepared = backends.Backends(missing=lacks)
    assert prepared.without_missing(asked).launches.hbw_policies == left
    assert not backends.lacking(plain, "")  # with Open MPI there are no such arms

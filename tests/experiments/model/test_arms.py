"""The name of an arm says what it is."""

from dataclasses import replace

from experiments.model.arms import Arm, arms, named
from experiments.model.environment import (
    BARE_HOST,
    ENVIRONMENTS,
    LAYOUTS,
    PROFILES,
    PROFILES_OF_ALL,
    USERNS,
    EnvironmentId,
    machine_names,
)
from experiments.model.launch import TRANSPORTS, Cell
from tests.benches import ask

PODMAN = EnvironmentId("podman")


def test_the_name_of_an_arm_gives_it_back() -> None:
    usual = {"arms": "environments", "mpis": ("impi",), "aa_pair": True}
    here = replace(
        ask(2).launches,
        environments=ENVIRONMENTS,
        profiles=PROFILES_OF_ALL,
        layouts=LAYOUTS,
        external=("IMB",),
        **usual,  # type: ignore[arg-type]
    )
    podman = replace(here, environments=(PODMAN,), profiles=PROFILES, external=(), aa_pair=False)
    all_arms = arms(here, "impi") + [arm for arm in arms(podman, "impi") if arm.profile == USERNS]
    for name in machine_names():
        guest = tuple(EnvironmentId(kind, name) for kind in ("vm", "vm-docker"))
        asked = replace(here, environments=guest, layouts=LAYOUTS[:1], external=())
        all_arms += arms(asked, "impi")
    assert {"host-again", "imb", "podman-userns-per-rank", "vm-plain"} <= {
        arm.name for arm in all_arms
    }
    assert [replace(named(arm.name), program=arm.program) for arm in all_arms] == all_arms


def test_policies_of_memory_are_arms_of_intel_mpi_on_the_host() -> None:
    asked = replace(
        ask(2).launches,
        arms="environments",
        mpis=("openmpi", "impi"),
        hbw_policies=("hbw_bind", "hbw_preferred"),
    )
    assert [arm.name for arm in arms(asked, "openmpi")] == ["host"]
    by_name = {arm.name: arm for arm in arms(asked, "impi")}
    assert list(by_name) == ["host", "host-hbw-bind", "host-hbw-preferred"]
    arm = by_name["host-hbw-bind"]
    assert (arm.hbw_policy, arm.environment, named(arm.name).hbw_policy) == (
        "hbw_bind",
        BARE_HOST,
        "",
    )
    cell = Cell("bcast", "mpi", "hbw", "local", 1024)
    taken = [name for name in TRANSPORTS if arm.measures(replace(cell, transport=name))]
    assert taken == ["mpi", "pickle"]


def test_no_name_that_arms_have_not_is_a_container() -> None:
    for name in ("openmpi-ucx-sm", "16 ranks", "remote", "podmanlike-tuned"):
        assert named(name) == Arm(name, BARE_HOST)

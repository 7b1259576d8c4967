"""The name of an arm says what it is."""

from dataclasses import replace

from experiments.bench.question import ask
from experiments.model.arms import Arm, arms, named
from experiments.model.environment import BARE_HOST, ENVIRONMENTS, LAYOUTS, PROFILES, emulated


def test_the_name_of_an_arm_gives_it_back() -> None:
    asked = replace(
        ask(2).launches,
        arms="environments",
        environments=(*ENVIRONMENTS, *emulated()),
        profiles=PROFILES,
        layouts=LAYOUTS,
        external=("IMB",),
        aa_pair=True,
    )
    found = arms(asked, "impi")
    assert {"host-again", "imb", "podman-tuned-per-rank", "vm-plain"} <= {arm.name for arm in found}
    assert [replace(named(arm.name), program=arm.program) for arm in found] == found


def test_no_name_that_arms_have_not_is_a_container() -> None:
    for name in ("openmpi-ucx-sm", "16 ranks", "remote", "podmanlike-tuned"):
        assert named(name) == Arm(name, BARE_HOST)

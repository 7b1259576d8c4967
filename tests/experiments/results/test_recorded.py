"""Whether a launch ran on an emulated machine, and the warning beside its times."""

from experiments.results import recorded
from tests.launched import made


def test_a_launch_names_its_machine_and_an_older_one_had_none() -> None:
    for environment, machine in (
        ({"machine": {"emulated": "gh200 (kvm)"}}, "gh200 (kvm)"),
        ({"machine": {"emulated": "no"}}, "no"),
        ({"machine": {}}, "no"),
        ({}, "no"),
    ):
        assert made({"environment": environment}).machine == machine


def test_only_emulated_machines_are_warned_of() -> None:
    names = recorded.machines(["no", "gh200 (tcg)", float("nan"), "gh200 (tcg)", "cxl (kvm)"])
    assert names == ["cxl (kvm)", "gh200 (tcg)"]
    assert recorded.meaning([]) == ""
    assert recorded.meaning(names) == (
        "Emulated machine cxl (kvm), gh200 (tcg): where ranks and pages are is real, times mean "
        "nothing."
    )

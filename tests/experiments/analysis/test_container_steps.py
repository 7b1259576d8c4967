"""The steps from the host to a container: each arm of the chain over the one before it."""

from experiments.analysis.container_steps import CONTAINER, FILES, RULES, Step, steps


def test_the_freest_profile_shows_the_container_and_the_others_their_rules() -> None:
    arms = {"host", "host-again", "userland", "docker-tuned-one", "docker-default-one"}
    assert steps(arms) == [
        Step(FILES, "userland", "host"),
        Step(CONTAINER, "docker-tuned-one", "userland"),
        Step(RULES, "docker-default-one", "docker-tuned-one"),
    ]
    assert steps({*arms, "docker-privileged-one"})[1:] == [
        Step(CONTAINER, "docker-privileged-one", "userland"),
        Step(RULES, "docker-default-one", "docker-privileged-one"),
        Step(RULES, "docker-tuned-one", "docker-privileged-one"),
    ]


def test_each_engine_and_layout_has_its_own_steps() -> None:
    chain = steps({"userland", "docker-tuned-one", "podman-default-one", "docker-default-isolated"})
    assert {(step.step, step.above) for step in chain} == {
        (CONTAINER, "docker-tuned-one"),
        (CONTAINER, "podman-default-one"),
        (CONTAINER, "docker-default-isolated"),
    }


def test_without_the_arm_userland_there_is_no_chain() -> None:
    assert steps({"host", "docker-tuned-one"}) == []
    assert steps({"host", "userland", "charliecloud"}) == [Step(FILES, "userland", "host")]

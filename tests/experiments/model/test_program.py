"""What the flags of `run --program` ask for."""

from pathlib import Path

import pytest

from experiments.model.errors import ExperimentsError
from experiments.model.program import ProgramRequest, asked


def test_a_line_and_an_image_are_run_on_the_host_and_in_docker() -> None:
    request = asked("python app.py --steps 3", image="my/app:1", ranks="2", cores=2)
    assert " ".join(request.words(request.arms[0])) == "mpiexec -n 2 python app.py --steps 3"
    assert [arm.name for arm in request.arms] == ["host", "host-again", "docker-default"]


def test_a_line_with_its_own_launcher_is_left_as_it_is() -> None:
    request = asked("mpiexec -n 2 ./a.out", host_program="/opt/mpi/bin/mpiexec -n 2 ./b.out")
    host = request.arms[0]
    assert request.words(host) == ("/opt/mpi/bin/mpiexec", "-n", "2", "./b.out")


def test_profiles_are_arms_and_the_uncounted_host_is_one() -> None:
    request = asked(
        "./a", image="i", environments="host,userland,podman", profiles="all", uncounted=True
    )
    assert [arm.name for arm in request.arms] == [
        *("host", "host-again", "host-uncounted", "userland"),
        *("podman-default", "podman-tuned", "podman-privileged"),
    ]


def test_without_the_host_the_first_environment_is_the_reference() -> None:
    request = asked("./a", image="i", environments="userland,docker")
    assert [arm.name for arm in request.arms] == ["userland", "userland-again", "docker-default"]


def test_a_mistake_is_named_with_its_flag() -> None:
    for flags, message in (
        ({"program": " "}, "--program is empty"),
        ({"program": "echo 'a"}, "is no command line"),
        ({"program": "a", "environments": "docker"}, "name one with --image"),
        ({"program": "a", "environments": "slurm"}, "reaches no process on another node"),
        ({"program": "a", "environments": "hosts"}, "runs in host, userland, docker, podman, or"),
        ({"program": "a", "environments": "hosts:2x1gbit"}, "say how many with --ranks"),
        ({"program": "a", "environments": "hosts:2xfast", "ranks": "2"}, "rate 'fast'"),
        ({"program": "a", "environments": "hosts:900", "ranks": "2"}, "900 hosts were asked for"),
        ({"program": "a", "image": "i", "environments": "host"}, "no environment runs it"),
        ({"program": "a", "profiles": "tuned"}, "--profiles are of containers"),
        ({"program": "a", "image": "i", "profiles": "loose"}, "is not one of default"),
        ({"program": "a", "image": "i", "profiles": "userns"}, "ask for --env host,podman"),
        ({"program": "a", "ranks": "0"}, "whole number above 0"),
        ({"program": "a", "ranks": "2.5"}, "whole number above 0"),
        ({"program": "a", "ranks": "4000"}, "take turns on"),
        ({"program": "a", "seconds": "-1"}, "number above 0"),
        ({"program": "a", "metric": "(("}, "no regular expression"),
        ({"program": "a", "metric": "steps"}, "has no group"),
        ({"program": "a", "workdir": "/nowhere/at/all"}, "is no folder"),
    ):
        with pytest.raises(ExperimentsError, match=message.replace("(", r"\(")):
            asked(**flags)  # type: ignore[arg-type]


def test_a_request_keeps_what_it_is_asked() -> None:
    request = asked("./a", metric=r"GFLOP/s: ([\d.]+)", seconds="2.5", blocks=7)
    assert (request.metric, request.seconds, request.blocks) == (r"GFLOP/s: ([\d.]+)", 2.5, 7)
    assert isinstance(request, ProgramRequest)


def test_a_shells_words_are_refused_with_the_line_that_asks_a_shell() -> None:
    for line in ("./a < in", "./a | tail -1", "./a && ./b"):
        with pytest.raises(ExperimentsError, match=r"is a shell's, and none is asked.*sh -c"):
            asked(line)
        assert asked(f"sh -c '{line}'").program == ("sh", "-c", line)


def test_a_program_outside_the_folder_is_found_from_it() -> None:
    request = asked("../build/a.out -n 1")
    assert request.host_program == (str(Path.cwd() / "../build/a.out"), "-n", "1")
    assert asked("./a.out").host_program == ("./a.out",)

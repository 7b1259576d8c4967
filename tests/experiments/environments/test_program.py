"""The commands that run a user's program."""

import shlex
from pathlib import Path

from experiments.environments import program
from experiments.environments.hosts import WaysIn
from experiments.environments.process import Process
from experiments.environments.profiles import Machine
from experiments.environments.program import Surroundings, UserImage
from experiments.model.program import ProgramArm

FOLDER = Path("/tmp/hbmcomm-program-1")
IMAGE = UserImage(
    "sha256:1",
    {"PATH": "/opt/bin", "A": "b c"},
    "/app",
    ("/layers", "lowerdir=l/A:l/B"),
    Path("/t"),
)
WORDS = ("mpiexec", "-n", "2", "./a.out", "-x", "1 2")


def around(ranks: int = 2, root: bool = True) -> Surroundings:
    """A machine of two CPUs."""
    machine = Machine("0-1", "0", (), 60706, 60706)
    return Surroundings(machine, ranks, 2, "LABEL", root, Path("/tuned.json"))


def container(arm: ProgramArm, *options: str, work: Path | None = None) -> list[str]:
    """The words of `docker run`."""
    return list(program.in_container(around(), arm, FOLDER, WORDS, IMAGE, work, options).argv)


def test_the_host_runs_the_program_under_the_keeper_in_its_copy_of_the_folder() -> None:
    process = program.on_host(around(), ProgramArm("host"), FOLDER, WORDS, FOLDER / "work")
    gate = FOLDER / "gate"
    kept = [str(gate / "keeper"), str(gate / "gate"), str(gate / "gate.so"), str(FOLDER / "work")]
    assert list(process.argv) == [*kept, "--", *WORDS]
    assert process.environment["HBMCOMM_GATE_RANKS"] == "2"
    assert process.environment["OMPI_MCA_plm"] == "isolated"


def test_ranks_on_emulated_hosts_are_started_by_the_launcher_of_the_program() -> None:
    """It finds the hosts, and the way into them, in its variables."""
    ways = WaysIn(("n1", "n2"), ("enter", "ctl"), {"n1": "pid:2"}, ("10.0.0.9", "switch"))
    arm = ProgramArm("hosts:2x1gbit")
    process = program.on_hosts(around(), arm, FOLDER, WORDS, None, ways, ("before",))
    assert process.argv[:3] == ("enter", "ctl", str(FOLDER / "gate/keeper"))
    variables = process.environment
    for name in ("PRTE_MCA_prte_default_hostfile", "HYDRA_HOST_FILE", "I_MPI_HYDRA_HOST_FILE"):
        assert variables[name] == str(FOLDER / "gate/names")
    assert variables["OMPI_MCA_plm"] == "rsh"
    assert Path(variables["OMPI_MCA_plm_rsh_agent"]).name == "enter.sh"
    assert (variables["HBMCOMM_PLACES"], variables["HBMCOMM_FIRST"]) == ("n1=pid:2", "before")
    assert arm.name == "hosts-2x1gbit"


def test_a_line_with_its_own_launcher_gets_no_settings_of_ours() -> None:
    process = program.on_host(around(0), ProgramArm("host"), FOLDER, WORDS, None)
    assert not [name for name in process.environment if "ALLOW_RUN_AS_ROOT" not in name]


def test_an_mpi_with_large_counts_has_its_build_and_a_whole_program_none() -> None:
    own = around()
    own.large.add("docker-tuned")
    assert own.library(ProgramArm("docker", "tuned")) == "gate-large.so"
    assert own.library(ProgramArm("docker", "tuned", twin=True)) == "gate-large.so"
    assert own.library(ProgramArm("docker", "default")) == "gate.so"
    whole = Surroundings(own.machine, 2, 2, "LABEL", True, whole=True)
    argv = program.on_host(whole, ProgramArm("host"), FOLDER, WORDS, None).argv
    assert argv[2:4] == ("", "")


def test_a_container_is_least_privileged_but_for_what_its_profile_gives() -> None:
    usual = {"--rm", "--pull=never", "--user=60706:60706", "--network=none"}
    usual |= {"--hostname=hbmcomm", "--add-host=hbmcomm:127.0.0.1"}
    usual |= {"--security-opt=no-new-privileges", "--entrypoint=/hbmcomm/keeper"}
    usual.add(f"--volume={FOLDER / 'gate'}:/hbmcomm:ro")
    for profile in ("default", "tuned", "privileged"):
        line = container(ProgramArm("docker", profile))
        assert line[:2] == ["docker", "run"]
        assert usual - set(line) == set(), profile
        assert ("--privileged" in line) == (profile == "privileged")
        assert ("--cap-drop=ALL" in line) == (profile == "tuned")
        assert ("--security-opt=seccomp=/tuned.json" in line) == (profile == "tuned")
        assert "--read-only" not in line
        kept = ["/hbmcomm/gate", "/hbmcomm/gate.so", "", "--", *WORDS]
        assert line[-len(kept) - 1 :] == ["sha256:1", *kept]


def test_options_of_the_user_replace_ours_of_the_same_name_alone() -> None:
    assert "--hostname=hbmcomm" not in container(ProgramArm("docker", "default"), "--uts=host")
    line = container(ProgramArm("docker", "default"), "--user=0", "--env=X=1", "--cpus", "1")
    assert [word for word in line if word.startswith("--user")] == ["--user=0"]
    assert "--env=HOME=/tmp" in line
    assert "--env=X=1" in line
    assert line.index("--cpus") < line.index("sha256:1")


def test_a_container_works_in_the_copy_of_the_users_folder() -> None:
    line = container(ProgramArm("podman", "default"), work=FOLDER / "work")
    assert line[0] == "podman"
    assert f"--volume={FOLDER / 'work'}:/work:rw" in line
    assert "--workdir=/work" in line


def test_userland_enters_the_layers_as_nobody_with_the_images_variables() -> None:
    process = program.over_layers(around(), ProgramArm("userland"), FOLDER, WORDS, IMAGE, None)
    words = shlex.split(process.shell())
    assert words[:3] == ["unshare", "--mount", "--propagation=private"]
    assert "--map-root-user" not in words
    assert "A=b c" in words
    assert "PATH=/opt/bin" in words
    at = words.index("/usr/sbin/chroot")
    assert words[at + 1 : at + 3] == ["--userspec=60706:60706", "/t"] or words[at + 1] == "/t"
    keeper = words.index("/hbmcomm/keeper")
    assert min(words.index("A=b c"), words.index("PATH=/opt/bin")) > keeper > at, (
        "what root runs before would load what a variable of the image names"
    )
    assert words[keeper + 3] == "/app"
    assert words[-len(WORDS) - 1 :] == ["--", *WORDS]


def test_a_user_who_is_not_root_mounts_in_a_namespace() -> None:
    plain = around(root=False)
    process: Process = program.over_layers(
        plain, ProgramArm("userland"), FOLDER, WORDS, IMAGE, FOLDER / "work"
    )
    assert "--map-root-user" in process.argv
    assert not [word for word in process.argv if word.startswith("--userspec")]
    assert process.argv[process.argv.index("/hbmcomm/keeper") + 3] == "/work"


def test_what_an_engine_needs_is_in_the_environment() -> None:
    process = program.with_variables(Process(("docker",), {"A": "b"}), {"DOCKER_HOST": "unix:///x"})
    assert process.environment == {"A": "b", "DOCKER_HOST": "unix:///x"}

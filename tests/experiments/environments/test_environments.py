"""Golden text of every command that an environment generates: a change shows as a readable diff.

golden/ holds one whole text for each shape of command, with the command of each MPI, and as a diff
how each variant differs: a profile from Docker's default, Podman from Docker, root from a user,
spread ranks from packed ones.
"""

import shlex
import sys
from dataclasses import replace
from pathlib import Path

from docker.models.containers import RUN_CREATE_KWARGS, RUN_HOST_CONFIG_KWARGS
from docker.types import HostConfig

from experiments.emulation.emulated_hosts import hosts_to_be
from experiments.emulation.host_plan import Plan
from experiments.environments import enter, profiles, runtime
from experiments.environments.charliecloud import CharliecloudRanks
from experiments.environments.docker import Docker
from experiments.environments.host import Host
from experiments.environments.hosts import OnHosts
from experiments.environments.process import Container, Process
from experiments.environments.profiles import Machine
from experiments.environments.vm import Vm
from experiments.model.environment import (
    CONTAINERS,
    ENVIRONMENTS,
    MPIS,
    ON_HOSTS,
    PROFILES,
    PROFILES_OF_ALL,
    RUNTIMES,
)
from experiments.model.launch import PACKED, SPREAD
from tests import launched
from tests.experiments.environments.golden_text import delta, paragraphs

GOLDEN = Path(__file__).parent / "golden"
FOLDER = Path("/results/incoming/0000")
PREFIX = Path("/opt/hbmcomm")
QUADRANT = Machine(
    *("0-15", "0,4", ("/dev/dax0.0",), 1000, 1000, 8 * 2**20, (1234,), (200000, 300000))
)
EMULATED = {"MEMKIND_HBW_NODES": "0"}
LAUNCH = replace(launched.LAUNCH, arm="golden", profile="tuned", layout="one")

UNPACKED = {str(env): tree for env in ENVIRONMENTS if (tree := runtime.tree_of(env))}


def docker(flavour: str = "openmpi", engine: str = "docker", rootless: bool = False) -> Docker:
    known = *(PREFIX, 16, QUADRANT), "c1", EMULATED
    return Docker(f"hbmcomm:{flavour}", *known, engine=engine, rootless=rootless)


def container(profile: str, ranks: int = 2) -> Container:
    return docker().command(replace(LAUNCH, profile=profile, ranks=ranks), FOLDER)


def unpacked_lines(name: str, root: bool) -> str:
    launch, tree = replace(LAUNCH, profile=""), Path("/build/unpacked")
    known = *(PREFIX, 16, QUADRANT), {"MEMKIND_HBW_NODES": "0,4"}
    return paragraphs(
        UNPACKED[name](tree / mpi, *known, root=root)
        .command(replace(launch, mpi=mpi), FOLDER)
        .shell()
        for mpi in MPIS
    )


def host_lines(binding: str) -> str:
    """Launch lines for emulated hosts."""
    launch = replace(LAUNCH, ranks=4, binding=binding)
    here = f"{Path(enter.__file__).parent}/"
    return paragraphs(
        OnHosts(PREFIX, 2, hosts_to_be(Plan(2)), None, EMULATED)
        .command(replace(launch, mpi=mpi), FOLDER)
        .shell()
        .replace(here, "")
        .replace(sys.executable, "python")
        for mpi in MPIS
    )


def in_a_guest(there: Host | Docker, mpi: str = "openmpi", profile: str = "") -> str:
    agent = Path("/run/hbmcomm/knl.agent")
    shown = Vm(there, agent).command(replace(LAUNCH, mpi=mpi, profile=profile), FOLDER).shell()
    return shown.replace(sys.executable, "python")


def engine_lines(engine: str, profile: str, rootless: bool = False) -> str:
    launch = replace(LAUNCH, profile=profile)
    return paragraphs(
        docker(mpi, engine, rootless).command(replace(launch, mpi=mpi), FOLDER).shell()
        for mpi in MPIS
    )


def golden() -> dict[str, str]:
    """The text of each file in golden/."""
    of_docker = {profile: engine_lines("docker", profile) for profile in PROFILES_OF_ALL}
    of_podman = {profile: engine_lines("podman", profile) for profile in PROFILES}
    assert not any("docker" in lines for lines in of_podman.values())
    default, tuned = of_docker["default"], of_podman["tuned"]
    texts = {"docker-default.txt": default}
    for profile in ("tuned", "privileged"):
        texts[f"docker-{profile}.diff"] = delta(default, of_docker[profile])
    for profile, lines in of_docker.items():
        like_docker = of_podman[profile].replace("podman", "docker")
        texts[f"podman-{profile}.diff"] = delta(lines, like_docker)
    texts["podman-userns.diff"] = delta(tuned, of_podman["userns"])
    texts["podman-rootless.diff"] = delta(tuned, engine_lines("podman", "tuned", rootless=True))
    for ranks in (2, 4):
        launch = replace(LAUNCH, ranks=ranks)
        host = Host(PREFIX, 2, EMULATED)
        hosts = (host.command(replace(launch, mpi=mpi), FOLDER) for mpi in MPIS)
        texts[f"host-{ranks}-ranks.txt"] = paragraphs(host.shell() for host in hosts)
    texts["hosts.txt"] = host_lines(PACKED)
    texts["hosts-spread.diff"] = delta(texts["hosts.txt"], host_lines(SPREAD))
    for name in UNPACKED:  # runtimes without an engine
        of_user = unpacked_lines(name, root=False)
        of_root = delta(of_user, unpacked_lines(name, root=True))
        texts[f"{name}.txt"] = f"{of_user}\nWhere the driver is root:\n{of_root}"
    in_guests = (in_a_guest(Host(PREFIX, 8, {"HOME": "/tmp"}), mpi) for mpi in MPIS)
    texts["vm.txt"] = paragraphs(in_guests)
    texts["vm-docker.txt"] = paragraphs(
        [in_a_guest(docker(), profile="tuned").partition(" -- ")[0]]
    )
    return texts


def test_commands_are_those_of_the_golden_files() -> None:
    texts = golden()
    assert {path.name for path in GOLDEN.iterdir()} == texts.keys()
    for name, text in texts.items():
        assert text == (GOLDEN / name).read_text(), name


def test_in_a_container_hosts_start_ranks_by_the_mpiexec_of_this_machine() -> None:
    image = CharliecloudRanks(Path("/unpacked"), Path("/image"))
    bare = OnHosts(PREFIX, 2, hosts_to_be(Plan(2)))
    for mpi in MPIS:
        launch = replace(LAUNCH, mpi=mpi, ranks=4)
        argv = list(replace(bare, contained=image).command(launch, FOLDER).argv)
        while "ch-run" in argv:  # Intel MPI takes the program once for each host
            begin = argv.index("ch-run")
            end = argv.index("--", begin)
            runtime, program = argv[begin:end], argv[end + 1 : end + 6]
            assert "--join-ct=2" in runtime and runtime[-1] == "/unpacked"
            assert f"--bind={FOLDER}:/launch" in runtime
            harness = ["-P", "-m", "experiments.programs.harness"]
            assert program == ["/image/bin/python", *harness, "/launch"]
            argv[begin : end + 6] = [str(PREFIX / "bin/python"), *harness, str(FOLDER)]
        assert tuple(argv) == bare.command(launch, FOLDER).argv, mpi


def test_ranks_in_a_container_on_hosts_are_not_root_where_root_starts_them() -> None:
    """Nor are the daemons of the launcher on the hosts, from which ranks have their user."""
    image = CharliecloudRanks(Path("/unpacked"), Path("/image"), user=(1000, 100))
    named = ["1000", "100", "tree", "/unpacked", "launch", str(FOLDER), "prefix", str(PREFIX)]
    bound = {"--uid=1000", "--gid=100", "--bind=/mnt/launch:/launch", "/mnt/tree"}
    hosts = OnHosts(PREFIX, 2, hosts_to_be(Plan(2)), image)
    for mpi in MPIS:
        launch = replace(LAUNCH, mpi=mpi)
        made = hosts.command(launch, FOLDER)
        assert bound < set(made.argv), mpi
        assert not [word for word in made.argv if "/unpacked" in word or str(FOLDER) in word], mpi
        first = shlex.split(made.environment[enter.FIRST])
        assert first[-11:] == [*named, "exec", "env", "HOME=/mnt/launch"], mpi
        assert made.environment[enter.PATHS] == f"{PREFIX}=/mnt/prefix", mpi
        of_user = replace(hosts, contained=replace(image, user=None))
        assert enter.FIRST not in of_user.command(launch, FOLDER).environment, mpi


def test_every_runtime_has_a_file_of_its_name_and_a_command_for_each_place() -> None:
    assert [candidate.name for candidate in runtime.every()] == list(RUNTIMES)
    others = [str(env) for env in ENVIRONMENTS if not runtime.tree_of(env)]
    assert others == ["host", "docker", "podman"]
    contained = [candidate.name for candidate in runtime.every() if candidate.contained]
    assert contained == list(CONTAINERS) and set(ON_HOSTS) < set(contained)


def test_a_guests_engine_is_given_what_the_hosts_would_be() -> None:
    """Before it are the same words, whatever the profile."""
    for profile in PROFILES_OF_ALL:
        before, _, container = in_a_guest(docker(), profile=profile).partition(" -- ")
        assert paragraphs([before]) == (GOLDEN / "vm-docker.txt").read_text(), profile
        there = docker().command(replace(LAUNCH, profile=profile), Path("/launch/0000"))
        assert container == there.shell(), profile
        assert "docker rm --force hbmcomm-c1-0000-golden" in before, profile


def test_what_ranks_write_in_a_user_namespace_belongs_to_an_id_that_is_lent() -> None:
    own, lent = (QUADRANT.uid, QUADRANT.gid), QUADRANT.lent
    owners = {profile: profiles.owner(profile, own, lent) for profile in PROFILES}
    assert owners.pop("userns") == (201000, 301000)
    assert set(owners.values()) == {(1000, 1000)}


def test_the_sdk_takes_every_option_that_the_shell_line_shows() -> None:
    for profile in PROFILES_OF_ALL:
        options = container(profile).options
        shared = {key: option for key, option in options.items() if key in RUN_HOST_CONFIG_KWARGS}
        assert options.keys() - shared.keys() - {*RUN_CREATE_KWARGS} == {"volumes"}, profile
        HostConfig(version="1.41", **shared)


def test_no_container_is_root_or_on_a_network_or_sees_more_than_its_launch() -> None:
    for profile in PROFILES:
        options = container(profile).options
        assert not options["user"].startswith("0"), profile
        assert options["network_mode"] == "none", profile
        assert list(options["volumes"]) == [str(FOLDER)], profile
        assert "no-new-privileges" in options["security_opt"], profile


def test_mpich_is_kept_from_reading_other_processes_only_where_the_filter_refuses_it() -> None:
    for engine, version, profile, refused in (
        ("docker", "20.10.24+dfsg1", "default", True),
        ("docker", "", "default", True),
        ("docker", "23.0.0", "default", False),
        ("docker", "28.5.2", "default", False),
        ("docker", "20.10.24+dfsg1", "tuned", False),
        ("docker", "20.10.24+dfsg1", "privileged", False),
        ("podman", "4.3.1", "default", False),
        ("podman", "4.3.1", "tuned", False),
    ):
        assert profiles.reading_refused(profile, engine, version) == refused, version
        environment = replace(docker("mpich", engine), version=version)
        options = environment.command(replace(LAUNCH, mpi="mpich", profile=profile), FOLDER).options
        assert ("MPIR_CVAR_CH4_CMA_ENABLE" in options["environment"]) == refused, version


def test_a_machine_without_memory_devices_and_limit_of_locked_memory_passes_none() -> None:
    options = profiles.options("tuned", replace(QUADRANT, dax=(), groups=(), memlock=-1), 2)
    assert options["devices"] == []
    assert "group_add" not in options
    assert options["ulimits"] == [{"name": "memlock", "soft": -1, "hard": -1}]


def test_shared_memory_grows_with_the_ranks() -> None:
    sizes = [container("tuned", ranks).options["shm_size"] for ranks in (2, 16)]
    assert sizes[1] > sizes[0] > 64 * 2**20


def test_a_shell_line_is_quoted() -> None:
    assert Process(("echo", "two words"), {"A": "b c"}).shell() == "env 'A=b c' echo 'two words'"


def test_intel_mpi_is_asked_for_a_policy_of_memory_by_its_variable() -> None:
    launch = replace(LAUNCH, mpi="impi")
    asked = replace(launch, hbw_policy="hbw_bind")
    host = Host(PREFIX, 2, EMULATED)
    before, after = (host.command(variant, FOLDER).environment for variant in (launch, asked))
    assert dict(after.items() - before.items()) == {
        "I_MPI_HBW_POLICY": "hbw_bind,hbw_bind,hbw_bind"
    }
    assert before.items() <= after.items()

"""How each MPI starts ranks, on this node or on several hosts. Pure: a command and its variables.

Ranks pin themselves, so no MPI does; a batch system's idea of slots and launchers is left out.
"""

from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path

JOB = ("SLURM_", "PMI_", "PMI2_", "PMIX_", "PRTE_", "OMPI_COMM_WORLD_", "PBS_", "LSB_", "HYDRA_")
"""How the variables of a job begin that this process may itself be a part of."""
ALLOCATION = ("SLURM_", "PBS_", "LSB_")
"""Variables of JOB that describe an allocation, not one step in it."""

AS_ROOT = {"OMPI_ALLOW_RUN_AS_ROOT": "1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM": "1"}
YIELDING = {
    "openmpi": {"OMPI_MCA_mpi_yield_when_idle": "1"},
    # its sched_yield leaves a spinning rank first in line; 4 ranks pinned to 2 cores took 0.11
    # (8 B), 0.10 (64 KiB), 0.23 (1 MiB) times as long with its nanosleep, in 8 pairs of runs
    "mpich": {"MPIR_CVAR_ENABLE_HEAVY_YIELD": "1"},
    "impi": {"I_MPI_WAIT_MODE": "1"},
}
"""Variables with which ranks of an MPI yield while they wait."""
ONE_NODE = ("I_MPI_HYDRA_BOOTSTRAP", "I_MPI_FABRICS")


def mpiexec(
    flavour: str,
    prefix: Path,
    ranks: int,
    cores: int,
    program: Sequence[str],
    contained: bool = False,
) -> tuple[list[str], dict[str, str]]:
    """The command that starts ranks of a program on this node, and the variables that it needs.

    More ranks than cores yield while they wait.

    Args:
        flavour: one of MPIS.
        prefix: the environment that holds it.
        contained: in a container that may not read other processes' memory.
    """
    crowded = ranks > cores
    argv = [str(prefix / "bin/mpiexec"), "-n", str(ranks)]
    variables = {"PATH": f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin"}
    if flavour == "openmpi":
        # a slot is a core to it: two hardware threads, or a batch system's one task, count as one
        argv += ["--bind-to", "none", "--oversubscribe"]
        argv += ["--mca", "mpi_yield_when_idle", str(int(crowded))]
        variables |= AS_ROOT
        # for one-sided calls over a fabric alone; Open MPI sleeps for a second when it closes this
        # component unused
        variables |= {"OMPI_MCA_btl": "^ofi"}
    elif flavour == "mpich":
        argv += ["-launcher", "fork", "-bind-to", "none"]
        variables |= {"MPIR_CVAR_CH4_CMA_ENABLE": "0"} if contained else {}
    else:
        variables |= {
            "LD_LIBRARY_PATH": f"{prefix}/lib",
            "I_MPI_HYDRA_BOOTSTRAP": "fork",
            "I_MPI_PIN": "0",
            "I_MPI_FABRICS": "shm",
        }
    if crowded and flavour != "openmpi":
        variables |= YIELDING[flavour]
    return [*argv, *program], variables


def across(
    flavour: str,
    prefix: Path,
    hosts: Sequence[str],
    home: tuple[str, str],
    cores: int,
    program: Sequence[str],
    launcher: Path,
) -> tuple[list[str], dict[str, str]]:
    """The command that starts ranks on several hosts, and the variables that it needs itself.

    Ranks find theirs where they start: nothing of this machine's environment reaches them.

    Args:
        prefix: the MPI's environment on this machine.
        hosts: of each rank, in their order: a name or a numeric address; each host names itself
            differently.
        home: this machine's address as hosts reach it, and the interface that has it.
        cores: that all hosts have together.
        program: at its place on the hosts.
        launcher: replaces ssh; stays until the command that it starts has ended.

    Raises:
        ValueError: MPICH cannot place ranks so.
    """
    argv = [str(prefix / "bin/mpiexec")]
    variables = {"PATH": f"{prefix}/bin:/usr/local/bin:/usr/bin:/bin"}
    if flavour == "openmpi":
        argv += ["-n", str(len(hosts)), "--host", ",".join(hosts), "--map-by", "seq"]
        argv += ["--wdir", "/tmp"]
        argv += ["--prtemca", "plm", "ssh", "--prtemca", "plm_ssh_agent", str(launcher)]
        argv += ["--prtemca", "plm_ssh_no_tree_spawn", "1", "--leave-session-attached"]
        argv += ["--bind-to", "none", "--mca", "mpi_yield_when_idle", str(int(len(hosts) > cores))]
        variables |= AS_ROOT
        return [*argv, *program], variables
    argv += ["-wdir", "/tmp", "-genvnone", "-localhost", home[0]]
    if flavour == "mpich":
        argv += ["-launcher", "ssh", "-launcher-exec", str(launcher), "-bind-to", "none"]
    else:
        argv += ["-bootstrap", "ssh", "-bootstrap-exec", str(launcher), "-iface", home[1]]
        variables |= {"LD_LIBRARY_PATH": f"{prefix}/lib", "I_MPI_PIN": "0"}
    return [*argv, *_placed(flavour, hosts, program)], variables


def _placed(flavour: str, hosts: Sequence[str], program: Sequence[str]) -> list[str]:
    """Hydra's words for the host of each rank, and the program."""
    distinct = list(dict.fromkeys(hosts))
    if all(host == distinct[rank % len(distinct)] for rank, host in enumerate(hosts)):
        return ["-hosts", ",".join(distinct), "-ppn", "1", "-n", str(len(hosts)), *program]
    runs = [(host, len(list(ranks))) for host, ranks in groupby(hosts)]
    if flavour == "impi":  # it does not read the counts of -hosts
        parts = [["-n", str(count), "-host", host, *program] for host, count in runs]
        return [word for part in parts for word in (":", *part)][1:]
    if len(runs) > len(distinct):
        raise ValueError(f"MPICH places ranks by host or in turn, not as {' '.join(hosts)}")
    counts = ",".join(f"{host}:{count}" for host, count in runs)
    return ["-hosts", counts, "-n", str(len(hosts)), *program]


def of_a_host(variables: Mapping[str, str]) -> dict[str, str]:
    """mpiexec()'s variables for a host of across(): without those that keep ranks to one node."""
    return {name: value for name, value in variables.items() if name not in ONE_NODE}


def outside_jobs(environment: Mapping[str, str], but: Sequence[str] = ()) -> dict[str, str]:
    """The variables without those of a job: ranks started here are a job of their own.

    Args:
        but: of JOB, what is kept.
    """
    lost = tuple(prefix for prefix in JOB if prefix not in but)
    return {name: value for name, value in environment.items() if not name.startswith(lost)}


_ASK = {
    "openmpi": {
        "OMPI_MCA_hook_comm_method_display": "mpi_init",  # a table: which BTL between which hosts
        "OMPI_MCA_smsc_base_verbose": "1",  # why it does without single copy
    },
    "mpich": {
        "MPIR_CVAR_DEBUG_SUMMARY": "1",  # the network module, and libfabric's provider
        "UCX_LOG_LEVEL": "info",  # UCX's lanes to each kind of neighbour
    },
    "impi": {"I_MPI_DEBUG": "5"},  # fabrics, libfabric's provider, network interface
}


def asking(flavour: str) -> dict[str, str]:
    """Variables for the ranks of an MPI, one of MPIS."""
    return dict(_ASK[flavour])

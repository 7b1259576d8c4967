"""Settings of each MPI that make some collective on one node faster, tried by --peers-tuned. Pure.

A setting is a set of environment variables. Each was seen to have an effect (in the MPI's verbose
output, its system calls or its times) with Open MPI 5.0.11, MPICH 5.0.2 and Intel MPI 2021.18.
"""

from collections.abc import Mapping

DEFAULT = "default"
"""The MPI as it comes: no variable is set."""

WARMUP = 10  # operations before the first that counts
TUNING = 64
"""Operations before the first that counts where the MPI tunes itself: Intel MPI 2021.18 tries its
algorithms during the first 40 calls of 1 MiB, and 45 of 16 MiB, and most of them are slow ones."""

_ONE_THREAD = {"MPI4PY_RC_THREAD_LEVEL": "single"}
"""mpi4py asks for MPI_THREAD_MULTIPLE. With less no call takes a lock, and MPICH uses its shared
memory collectives (release_gather) at all: with threads it refuses them, even where forced."""

# Not here, because it changes nothing on one node: coll_han_priority (coll/han disqualifies itself
# where all ranks are local). Not in the wheel: coll/xhc, smsc/xpmem. CMA is on by default.
_COLL_SM = {"OMPI_MCA_coll_sm_priority": "50"}
_UCX = {
    "OMPI_MCA_pml": "ucx",
    "OMPI_MCA_pml_ucx_tls": "any",  # else it steps back where no fast network is found
    "OMPI_MCA_pml_ucx_devices": "any",
}
_ADAPT = {"OMPI_MCA_coll_adapt_priority": "100"}

_RELEASE_GATHER = {
    f"MPIR_CVAR_{name}_POSIX_INTRA_ALGORITHM": "release_gather"
    for name in ("BCAST", "REDUCE", "ALLREDUCE", "BARRIER")
}
_ROOM = {
    "MPIR_CVAR_COLL_SHM_LIMIT_PER_NODE": "1048576",  # KiB; 64 MiB by default
    "MPIR_CVAR_BCAST_INTRANODE_BUFFER_TOTAL_SIZE": "1048576",  # bytes; 32 KiB by default
    "MPIR_CVAR_REDUCE_INTRANODE_BUFFER_TOTAL_SIZE": "1048576",
}
_GENERIC_TRANSPORT = {
    "MPIR_CVAR_IBCAST_INTRA_ALGORITHM": "tsp_tree",
    "MPIR_CVAR_IREDUCE_INTRA_ALGORITHM": "tsp_tree",
    "MPIR_CVAR_IALLGATHER_INTRA_ALGORITHM": "tsp_recexch_doubling",
    "MPIR_CVAR_IGATHER_INTRA_ALGORITHM": "tsp_tree",
    "MPIR_CVAR_ISCATTER_INTRA_ALGORITHM": "tsp_tree",
}

# Not here, because it changes nothing: I_MPI_SHM_CMA (ranks copy through cells either way),
# I_MPI_COLL_INTRANODE=shm (the default).
_POINT_TO_POINT = {"I_MPI_COLL_INTRANODE": "pt2pt"}
_AUTOTUNED = {"I_MPI_TUNING_MODE": "auto"}  # tries its algorithms at the first calls of each size
_BROADWELL = {"I_MPI_SHM": "bdw_avx2"}  # another shared memory transport; needs AVX2

_TABLE: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "openmpi": {
        "one-thread": _ONE_THREAD,
        "sm": _ONE_THREAD | _COLL_SM,
        "sm-64k": _ONE_THREAD | _COLL_SM | {"OMPI_MCA_coll_sm_fragment_size": "65536"},
        "adapt": _ONE_THREAD | _ADAPT,
        "ucx": _ONE_THREAD | _UCX,
        "ucx-sm": _ONE_THREAD | _UCX | _COLL_SM,
        "ucx-adapt": _ONE_THREAD | _UCX | _ADAPT,
    },
    "mpich": {
        "one-thread": _ONE_THREAD,
        "release-gather": _ONE_THREAD | _RELEASE_GATHER | _ROOM,
        "generic-transport": _ONE_THREAD | _GENERIC_TRANSPORT,
    },
    "impi": {
        "one-thread": _ONE_THREAD,
        "point-to-point": _ONE_THREAD | _POINT_TO_POINT,
        "autotuned": _ONE_THREAD | _AUTOTUNED,
        "autotuned-point-to-point": _ONE_THREAD | _AUTOTUNED | _POINT_TO_POINT,
        "bdw": _ONE_THREAD | _BROADWELL,
        "autotuned-bdw": _ONE_THREAD | _AUTOTUNED | _BROADWELL,
        "point-to-point-threads": _POINT_TO_POINT,
        "autotuned-threads": _AUTOTUNED,
    },
}


HBW_POLICY = "I_MPI_HBW_POLICY"
HBW_POLICY_MPI = "impi"
"""The MPI that reads it."""
HBW_POLICIES = ("hbw_bind", "hbw_preferred", "hbw_interleave")
"""Where Intel MPI puts memory on a machine with HBM. Its hbw_interleave alternates between HBM and
DRAM, unlike memkind's, which alternates between nodes of HBM."""


def hbw_policy(policy: str) -> dict[str, str]:
    """The variables for one of HBW_POLICIES; none for "".

    The same one for the memory of the program, of the MPI itself and of its windows.
    """
    return {HBW_POLICY: ",".join([policy] * 3)} if policy else {}


def settings(flavour: str, tuned: bool) -> tuple[str, ...]:
    """Names of the settings in which an MPI takes part; the default one comes first.

    Args:
        tuned: all of them; else the default alone.
    """
    return (DEFAULT, *_TABLE[flavour]) if tuned else (DEFAULT,)


def runs_nonblocking(flavour: str, setting: str) -> bool:
    """Whether direct does nonblocking calls itself in a setting.

    Under Intel MPI a thread brings them forward, which an MPI with one thread does not allow: there
    direct leaves them to MPI.
    """
    return flavour != "impi" or not _ONE_THREAD.items() <= variables(flavour, setting).items()


def warmup(flavour: str, setting: str) -> int:
    """Operations of an MPI before the first that counts; of an unknown setting WARMUP."""
    known = _TABLE.get(flavour, {}).get(setting, {})
    tunes = _AUTOTUNED.items() <= known.items()
    return TUNING if tunes else WARMUP


def variables(flavour: str, setting: str) -> dict[str, str]:
    """The environment variables of a setting, beside those that start the MPI at all.

    Args:
        setting: of settings(); "" where the MPI is no arm, and as it comes.

    Raises:
        KeyError: the MPI has no such setting.
    """
    return {} if setting in ("", DEFAULT) else dict(_TABLE[flavour][setting])

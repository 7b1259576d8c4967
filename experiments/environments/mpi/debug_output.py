"""Variables that make each MPI print, once at its start, which ways its messages will take. Pure.

It goes to the MPI's output, where experiments/analysis/mpi_transport_log.py reads it. While
messages are timed nothing is printed, and nothing costs time.
"""

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

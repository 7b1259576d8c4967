"""oneCCL's calls, over a stand-in for its header and library: one rank, which adds nothing."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from mpi4py import MPI

from experiments.implementations import one_ccl
from experiments.implementations.contender import ContenderMissing
from tests.native.compiling import tool_at

HEADER = """
#include <array>
#include <cstring>
#include <memory>
namespace ccl {
template <class T> using shared_ptr_class = std::shared_ptr<T>;
struct kvs {
    using address_type = std::array<char, 256>;
    address_type get_address() { address_type own{}; own[0] = 7; return own; }
};
struct event { void wait() {} };
struct communicator {};
enum class reduction { sum };
inline void init() {}
inline std::shared_ptr<kvs> create_main_kvs() { return std::make_shared<kvs>(); }
inline std::shared_ptr<kvs> create_kvs(kvs::address_type) { return create_main_kvs(); }
inline communicator create_communicator(int, int, std::shared_ptr<kvs>) { return {}; }
inline event moved(const float *send, float *recv, size_t count, float mark)
{
    for (size_t i = 0; i < count; i++)
        recv[i] = send[i] + mark;
    return {};
}
inline event broadcast(float *data, size_t count, int, communicator &)
{
    return moved(data, data, count, 1);
}
inline event allreduce(float *send, float *recv, size_t count, reduction, communicator &)
{
    return moved(send, recv, count, 2);
}
inline event allgather(float *send, float *recv, size_t count, communicator &)
{
    return moved(send, recv, count, 3);
}
inline event alltoall(float *send, float *recv, size_t count, communicator &)
{
    return moved(send, recv, count, 4);
}
inline event reduce_scatter(float *send, float *recv, size_t count, reduction, communicator &)
{
    return moved(send, recv, count, 5);
}
}
"""
ADDED = {"bcast": 1, "allreduce": 2, "allgather": 3, "alltoall": 4, "reduce_scatter": 5}
"""What the stand-in adds, by operation: so it is seen which of its calls was made."""


@pytest.fixture
def prefix(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The environment of the ranks, without oneCCL yet."""
    monkeypatch.setattr(sys, "prefix", str(tmp_path))
    monkeypatch.setattr(one_ccl, "BUILD", tmp_path / "build")
    return tmp_path


def test_ranks_of_another_mpi_and_ranks_without_oneccl_are_refused(prefix: Path) -> None:
    with pytest.raises(ContenderMissing, match="over Intel MPI, and not over openmpi"):
        one_ccl.make(MPI.COMM_SELF, "openmpi")
    with pytest.raises(ContenderMissing, match="oneccl is not installed"):
        one_ccl.make(MPI.COMM_SELF, "impi")


def test_each_operation_is_the_call_of_its_name_over_all_elements(prefix: Path) -> None:
    header = prefix / "include/oneapi/ccl.hpp"
    header.parent.mkdir(parents=True)
    header.write_text(HEADER)
    (prefix / "lib").mkdir()
    library = [tool_at("c++"), "-shared", "-fPIC", "-x", "c++", "-", "-o", prefix / "lib/libccl.so"]
    subprocess.run(library, input=b"", check=True)
    ready = one_ccl.make(MPI.COMM_SELF, "impi")
    for operation in one_ccl.OPERATIONS:
        send, recv = np.arange(5, dtype="f4"), np.full(5, -1, "f4")
        call = ready(operation, send, recv)
        assert call is not None
        call.call()
        arrived = send - 1 if operation == "bcast" else recv - ADDED[operation]
        assert arrived.tolist() == [0, 1, 2, 3, 4]
    assert ready("gather", send, recv) is None

"""Regions between ranks: `exchange.py TRANSPORT`. Ranks 0 and 1 share memory unless it is mpi."""

import re
import sys
import time
from functools import partial
from importlib.util import find_spec

import numpy as np
from mpi4py import MPI

import hbmcomm
from hbmcomm.training.regions import IncomingTrace, OutgoingTrace, Regions
from tests.hbmcomm.ranks.refusal import refused

SHAPES = ((), (1,), (7, 3), (0, 5), (1024,), (2, 2, 2, 2, 2, 2, 2, 2), (256, 4))
DTYPES = ("float32", "float64", "int8", "complex128", "uint16", "bool", ">i4", "datetime64[ns]")
CAPACITY = 1024 * 16


def tensor(shape: tuple[int, ...], dtype: str, seed: int) -> np.ndarray:
    count = int(np.prod(shape))
    return np.arange(seed, seed + count).reshape(shape).astype(dtype)


def shapes_change_without_new_regions(regions: Regions) -> None:
    """Each tensor is read where it was written, whatever its shape and type."""
    forms = [(shape, dtype) for shape in SHAPES for dtype in DTYPES]
    if COMM.rank == 0:
        remote = regions.open(1)["x"]
        for seed, (shape, dtype) in enumerate(forms):
            out = remote.array(shape, dtype)
            out[...] = tensor(shape, dtype, seed)
            remote.post()
        assert (remote.copied_bytes == 0) == SHARED, remote.copied_bytes
        before = remote.copied_bytes
        remote.write(np.arange(10.0))
        assert remote.copied_bytes - before >= 80
        with refused(ValueError, "16,385 bytes; the region"):
            remote.array(CAPACITY + 1, "int8")
        with refused(TypeError, "dtype object cannot be in a region"):
            remote.array(1, object)
        with refused(ValueError, "at most 8 dimensions"):
            remote.array((1,) * 9)
        with refused(ValueError, "none negative"):
            remote.array(-1)
        with refused(ValueError, "nothing to post"):
            remote.post()
        shape = [4, 5]
        remote.array(shape)
        shape[0] = 2
        assert remote.array(shape).shape == (2, 5)  # not what the list was
        for wrong in ((np.int32(65536), np.int32(65536)), "float32"), ((3,), "S"):
            with refused((ValueError, TypeError)):
                remote.array(*wrong)
            remote.array(shape)[...] = 4
            remote.post()
        with refused(ValueError, f"take another rank of the {COMM.size} than this one, 0"):
            regions.open(0)
    elif COMM.rank == 1:
        own = regions.allocate(0, {"x": CAPACITY})["x"]
        memory = own.wait()
        first = memory.__array_interface__["data"][0]
        for seed, (shape, dtype) in enumerate(forms):
            array, due = own.wait(), tensor(shape, dtype, seed)
            assert array.shape == due.shape and array.dtype == due.dtype, (shape, dtype)
            np.testing.assert_array_equal(array, due)
            assert not array.size or array.__array_interface__["data"][0] == first
            own.release()
        np.testing.assert_array_equal(own.wait(), np.arange(10.0))
        own.release()
        for _ in range(2):
            np.testing.assert_array_equal(own.wait(), np.full((2, 5), 4))
            own.release()
        with refused(ValueError, "nothing to release"):
            own.release()
        with refused(ValueError, "region 'y' of 0 bytes"):
            regions.allocate(0, {"y": 0})
        with refused(ValueError, "rank 9 cannot be at the other"):
            regions.allocate(9, {"y": 1})


def two_traces_take_turns(regions: Regions) -> None:
    """The allocation of the first trace is rank 1's second; its reply has the second reply tag."""
    if COMM.rank == 0:
        outgoing = [OutgoingTrace(regions, 1) for _ in range(2)]
        for step in range(2):
            for number, trace in enumerate(outgoing):
                with trace:
                    trace.out("x", 3)[:] = number + step
                    trace.send("x")
    elif COMM.rank == 1:
        incoming = [IncomingTrace(regions, 0) for _ in range(2)]
        for step in range(2):
            for number, trace in enumerate(incoming):
                with trace:
                    assert (trace.receive("x") == number + step).all()


def a_producer_waits_until_its_tensor_is_released(regions: Regions) -> None:
    """All ranks at once, each for the next; no tensor is overwritten while it is read."""
    before, after = (COMM.rank - 1) % COMM.size, (COMM.rank + 1) % COMM.size
    own = regions.allocate(before, {"a": 4 * 1000, "b": 4 * 1000})
    remote = regions.open(after)
    for step in range(50):
        for name in ("a", "b"):
            remote[name].array(1000)[:] = 2 * step + COMM.rank
            remote[name].post()
        for name in ("b", "a"):
            array = own[name].wait()
            assert (array == 2 * step + before).all()
            assert own[name].wait() is array
            own[name].release()


def torch_computes_into_regions(regions: Regions) -> None:
    if COMM.allreduce(find_spec("torch") is None):
        return
    import torch

    if COMM.rank == 0:
        remote = regions.open(1)["x"]
        out = torch.from_numpy(remote.array(1000))
        torch.mul(torch.arange(1000.0), 3.0, out=out)
        remote.post()
    elif COMM.rank == 1:
        own = regions.allocate(0, {"x": 4000})["x"]
        assert torch.equal(torch.from_numpy(own.wait()), 3 * torch.arange(1000.0))
        own.release()


def a_trace_moves_what_a_step_sends_to_its_reader(regions: Regions) -> None:
    sizes = {"conv": 1000, "bias": 10, "fc": 5000}
    if COMM.rank == 0:
        outgoing, addresses = OutgoingTrace(regions, 1), []
        for step in range(4):
            with outgoing:
                for name, size in sizes.items():
                    out = outgoing.out(name, (size - step, 2))
                    np.add(np.arange(2.0), step * size, out=out, casting="unsafe")
                    outgoing.send(name)
                    addresses.append(out.__array_interface__["data"][0])
                unread = step == 0 and outgoing.out("unread", 3) is not None
                if unread:
                    outgoing.send("unread")
        assert addresses[3:6] == addresses[6:9] == addresses[9:]
        assert (outgoing.copied_bytes == 0) == SHARED
        with refused(ValueError, "found conv, bias, fc; send every"):
            outgoing.out("unread", 3)
    elif COMM.rank == 1:
        incoming = IncomingTrace(regions, 0)
        for step in range(4):
            with incoming:
                for name in ("fc", "conv", "bias"):
                    array = incoming.receive(name)
                    assert array.shape == (sizes[name] - step, 2)
                    assert (array == np.arange(2.0) + step * sizes[name]).all()


def regions_work_while_a_call_is_in_flight(regions: Regions) -> None:
    """A nonblocking call of the communicator that the regions are of, in either order."""
    sums = np.zeros((2, 300_000))
    first, second = (partial(COMM.Iallreduce, np.ones(300_000), total) for total in sums)
    if COMM.rank == 0:
        remote = regions.open(1)["x"]
        time.sleep(0.05)  # rank 1 waits for the tensor and for the sum meanwhile
        remote.write(np.ones(10))
        requests = [first(), second()]
        remote.array(10)  # waits for the release
    elif COMM.rank == 1:
        own = regions.allocate(0, {"x": 80})["x"]
        requests = [first()]
        assert own.wait().sum() == 10
        time.sleep(0.05)
        own.release()
        requests.append(second())
    else:
        requests = [first(), second()]
    MPI.Request.Waitall(requests)
    assert (sums == COMM.size).all()


def an_error_in_the_block_of_one_rank_ends_the_waits_of_others() -> None:
    comm = COMM.Dup()
    try:
        with Regions(comm) as regions:
            if comm.rank == 1:
                raise KeyError("a mistake of the program")
            regions.open(1)["x"].array(1)
    except KeyError:
        assert comm.rank == 1
    except hbmcomm.PeerError as error:
        assert re.search("rank [12] (gave up|has left|died)", str(error)), error
    else:
        raise AssertionError("no error")


COMM = hbmcomm.Communicator(MPI.COMM_WORLD, kind="regular", transport=sys.argv[1])
SHARED = COMM.transport != "mpi"
with refused(TypeError, "wrap it: hbmcomm.Communicator"):
    Regions(MPI.COMM_WORLD)  # type: ignore[arg-type]
with Regions(COMM) as common:
    shapes_change_without_new_regions(common)
    two_traces_take_turns(common)
    a_producer_waits_until_its_tensor_is_released(common)
    regions_work_while_a_call_is_in_flight(common)
    torch_computes_into_regions(common)
    a_trace_moves_what_a_step_sends_to_its_reader(common)
common.close()  # once more does nothing
an_error_in_the_block_of_one_rank_ends_the_waits_of_others()
assert COMM.allreduce(1) == COMM.size
COMM.Free()
print(f"rank {MPI.COMM_WORLD.rank}: all right")

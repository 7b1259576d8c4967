"""Which calls the core does, and which go to MPI, by the lengths of messages and entries."""

import itertools

from hbmcomm.transports.native import ffi, lib

GIB = 2**30
TO_EACH = (lib.HBM_SCATTER, lib.HBM_ALLTOALL, lib.HBM_REDUCE_SCATTER_BLOCK)
TO_ALL = (lib.HBM_BCAST, lib.HBM_GATHER, lib.HBM_ALLGATHER, lib.HBM_REDUCE, lib.HBM_SCAN)
UNEQUAL = (lib.HBM_GATHERV, lib.HBM_SCATTERV, lib.HBM_ALLTOALLV)
LENGTHS = (0, 1, 2**31 - 1, 2**31, 2**32 + 1, 32 * GIB, 32 * GIB + 4096, 200 * GIB)


def serves(ranks: int, **fields: int) -> bool:
    return bool(lib.hbm_serves(ffi.new("hbm_call *", fields), ranks))


def test_messages_past_every_counter_of_32_bits_are_served() -> None:
    for ranks, nbytes in itertools.product((1, 2, 8, 1024), LENGTHS):
        for operation in TO_ALL:
            for dtype, count in ((lib.HBM_UINT8, nbytes), (lib.HBM_FLOAT64, nbytes // 8)):
                case = {"operation": operation, "dtype": dtype, "count": count}
                assert serves(ranks, **case), (ranks, case)
        for operation in TO_EACH:
            case = {"operation": operation, "dtype": lib.HBM_UINT8, "count": nbytes // ranks}
            assert serves(ranks, **case), (ranks, case)


def test_messages_that_the_counter_of_steps_could_not_count_go_to_mpi() -> None:
    for operation in (*TO_ALL, *TO_EACH):
        for count in (2**42, 2**60, 2**63, 2**64 - 1):
            case = {"operation": operation, "dtype": lib.HBM_FLOAT64, "count": count}
            assert not serves(2, **case), case


def test_ranks_that_cannot_know_the_longest_message_decide_alike() -> None:
    for operation in UNEQUAL:
        assert serves(2, operation=operation, dtype=lib.HBM_UINT8, count=2**45)
        assert serves(2, operation=operation, dtype=lib.HBM_UINT8, count=1)


def test_every_rank_decides_by_the_longest_block_that_it_knows() -> None:
    parts = ffi.new("hbm_part[2]", [(0, 8), (8, 2**45)])
    for operation, field in (
        (lib.HBM_REDUCE_SCATTER, "send_parts"),
        (lib.HBM_ALLGATHERV, "recv_parts"),
    ):
        fields = {"operation": operation, "dtype": lib.HBM_FLOAT64, field: parts}
        for count in (1, 2**42):
            assert not serves(2, count=count, **fields)


def test_entries_of_functions_are_served_up_to_what_every_path_has_room_for() -> None:
    user = {"dtype": lib.HBM_PACKED, "reduction": lib.HBM_USER, "count": 3}
    operations = (lib.HBM_ALLREDUCE, lib.HBM_SCAN, lib.HBM_REDUCE_SCATTER_BLOCK)
    for ranks, operation in itertools.product((1, 2, 8, 1024), operations):
        room = 512 * 1024 // (ranks if operation == lib.HBM_REDUCE_SCATTER_BLOCK else 1)
        sizes = {1: True, 3: True, room: True, 0: False, room + 1: False, 2**33: False}
        for entry, expected in sizes.items():
            case = {"operation": operation, "entry_bytes": entry}
            assert serves(ranks, **case, **user) is expected, (ranks, case)

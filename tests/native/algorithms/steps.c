/* The steps of a call: their number stays below that of the next call, whatever the length of the
   pieces. The build with STEP_BITS=8 has messages with more pieces than it has steps. */
#include "buffers.h"

#include "comm/posts.h"

/* More than a byte for each step; less than what only MPI has steps for. */
#define MESSAGE (STEP_BITS == 20 ? 2 * 1024 * 1024 : 512 * 1024)

static const uint8_t operations[] = {HBM_BCAST, HBM_GATHER, HBM_SCATTER, HBM_ALLGATHER,
                                     HBM_ALLTOALL, HBM_REDUCE, HBM_ALLREDUCE, HBM_SCAN,
                                     HBM_REDUCE_SCATTER_BLOCK};

/* A later call would take such a word for a step of its own. */
static void check_words(const member *me, const hbm_call *call)
{
    const control *own = me->comm->own;
    const word *words[] = {&own->ready, &own->done, &own->sync[0], &own->sync[1], &own->sync[2]};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        CHECK(atomic_load(&words[i]->value) >> STEP_BITS <= me->comm->sequence,
              "operation %d on rank %d of %d, %llu bytes in pieces of %llu: word %d shows a step of "
              "a later call", call->operation, me->rank, me->g.size,
              (unsigned long long)call->count, (unsigned long long)me->g.piece_bytes, (int)i);
}

static void body_steps(member *me)
{
    for (size_t i = 0; i < 2 * sizeof operations; i++) {
        int operation = operations[i / 2], shared = (int)(i % 2);
        buffer send = new_buffer(me->heap, shared, MESSAGE, 0);
        buffer recv = new_buffer(me->heap + HEAP_BYTES / 2, shared, MESSAGE, 0);
        hbm_call call = {.operation = (uint8_t)operation, .dtype = HBM_UINT8,
                         .count = MESSAGE / (uint64_t)me->g.size, .send = (uintptr_t)send.at,
                         .recv = (uintptr_t)recv.at};
        if (operation == HBM_BCAST)
            call.recv = call.send;
        CHECK(call.count / LINE > LAST_STEP || STEP_BITS == 20, "the message is too short");
        CHECK(hbm_run(me->comm, &call) == HBM_OK, "operation %d failed", operation);
        check_words(me, &call);
        end_buffer(send);
        end_buffer(recv);
    }
}

/* Rank 0 offers its message in pieces of one byte, which no rank of this library does. */
static void body_short_pieces(member *me)
{
    static char message[MESSAGE];
    hbm_call call = {.operation = HBM_BCAST, .dtype = HBM_UINT8, .count = sizeof message,
                     .send = (uintptr_t)message, .recv = (uintptr_t)message};
    if (me->rank) {
        int status = hbm_run(me->comm, &call);
        CHECK(status == HBM_UNTRUSTED, "more pieces than steps: status %d", status);
        return;
    }
    hbm_operation o = {.comm = me->comm, .call = call, .block = call.count, .room = 1};
    CHECK(hbm_begin_call(&o, READ_BY_ALL) == HBM_OK, "the call cannot begin");
    hbm_post(&o, NULL, call.count, IN_STAGING);
    hbm_close(me->comm);
}

void test_steps(UNUSED uint64_t seed, UNUSED double seconds)
{
    static const uint64_t pieces[] = {LINE, 1ul << 30}; /* the least and the most of the setting */
    for (int i = 0; i < 2; i++) {
        as_ranks((group){.size = 2, .piece_bytes = pieces[i]}, body_steps, NULL);
        as_ranks((group){.size = 3, .piece_bytes = pieces[i], .machine = odd_and_even}, body_steps,
                 NULL);
        as_ranks((group){.size = 4, .piece_bytes = pieces[i], .reads_private = 1, .fan_in = 2},
                 body_steps, NULL);
    }
    as_ranks((group){.size = 2}, body_short_pieces, NULL);
}

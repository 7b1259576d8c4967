/* Reduce and allreduce of arrays that others cannot access: in pieces, through staging buffers.

   Each rank copies its input in, except for the slice that it reduces itself; reduces that slice of
   all inputs; and copies the other slices out. Step 2k + 1 of the call: piece k is copied in. Step
   2k + 2: its slices are reduced.

   Ordering: hbm_signal_arrival() releases and hbm_sync() acquires, so each step sees the stores of
   the one before. There are at least two buffers for inputs and two for results. Inputs of piece k
   + 1 overwrite those of k - 1 after all ranks have reached step 2k + 1, and so have reduced k - 1.
   Results of k overwrite those of k - 2 after all ranks have reached 2k + 1, and so have copied k -
   2 out. Short messages have more buffers, and each call continues with the next one, as in
   pieces.c.

   Models: algorithms/reduce_staged.pml, comm/failure.pml */
#include "algorithms/algorithms.h"
#include "algorithms/barrier.h"
#include "algorithms/pieces.h"
#include "algorithms/rendezvous.h"
#include "algorithms/slices.h"

#define PIECE (256 * KIB)
#define BUFFERS 4 /* the least number of them */

_Static_assert(BUFFERS * PIECE <= STAGING_BYTES && BUFFERS <= STAGING_DEPTH,
               "the staging buffers are too small");

enum { BEGINNING, REDUCING, COPYING_OUT };

static uint64_t buffer_bytes(const hbm_operation *o)
{
    uint64_t bytes = (o->block < o->room ? o->block : o->room) + LINE - 1;
    return bytes - bytes % LINE;
}

static uint64_t all_bytes(const hbm_operation *o)
{
    return buffer_bytes(o) > PIECE ? STAGING_BYTES : BUFFERS * PIECE;
}

static uint64_t offset_of(const hbm_operation *o, uint64_t buffer)
{
    uint64_t bytes = buffer_bytes(o);
    return (o->comm->reduced + buffer) % (all_bytes(o) / bytes) * bytes;
}

static uint64_t input_offset(const hbm_operation *o, uint64_t piece)
{
    return offset_of(o, 2 * piece);
}

static uint64_t result_offset(const hbm_operation *o, uint64_t piece)
{
    return offset_of(o, 2 * piece + 1);
}

static uint64_t bytes_of(const hbm_operation *o, uint64_t piece)
{
    uint64_t at = piece * o->room;
    return at >= o->block ? 0 : o->block - at < o->room ? o->block - at : o->room;
}

/* Copies in all but the own slice, for the other ranks to reduce. */
static void copy_in(hbm_operation *o, uint64_t piece)
{
    hbm_comm *c = o->comm;
    uint64_t bytes = bytes_of(o, piece);
    slice own = slice_of(o, bytes, c->rank, c->size);
    const char *from = (const char *)o->call.send + piece * o->room;
    char *to = (char *)c->peers[c->rank].ordinary + c->staging + input_offset(o, piece);
    hbm_copy(to, from, own.from);
    hbm_copy(to + own.to, from + own.to, bytes - own.to);
    hbm_signal_arrival(o, 2 * piece + 1);
}

static int reduce_slice(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    uint64_t bytes = bytes_of(o, o->piece);
    slice own = slice_of(o, bytes, c->rank, c->size);
    int outs = 0;
    for (int r = 0; r < c->size; r++) {
        c->in[r] = r == c->rank ? (const char *)o->call.send + o->piece * o->room
                                : (const char *)hbm_staged(o, r, input_offset(o, o->piece), bytes);
        if (!c->in[r])
            return c->failure.status;
        count_from(c, r, own.to - own.from);
    }
    c->out[outs++] = c->peers[c->rank].ordinary + c->staging + result_offset(o, o->piece);
    if (has_output(o, c->rank))
        c->out[outs++] = (char *)o->call.recv + o->piece * o->room;
    int status = reduce_into(o, c->size, c->out, outs, own.from, own.to - own.from, IN_ORDER);
    if (!status) /* a function of the program may fail: then there is no result to announce */
        hbm_signal_arrival(o, 2 * o->piece + 2);
    return status;
}

static int copy_out(hbm_operation *o)
{
    hbm_comm *c = o->comm;
    uint64_t bytes = bytes_of(o, o->piece);
    char *output = (char *)o->call.recv + o->piece * o->room;
    for (int i = 1; i < c->size && has_output(o, c->rank); i++) {
        int r = next_of(o, i);
        slice s = slice_of(o, bytes, r, c->size);
        const char *from = hbm_staged(o, r, result_offset(o, o->piece), bytes);
        if (!from)
            return c->failure.status;
        copy_staged(o, output + s.from, from + s.from, s.to - s.from);
        count_from(c, r, s.to - s.from);
    }
    return HBM_OK;
}

int hbm_reduce_staged(hbm_operation *o)
{
    int status;
    if (o->stage == BEGINNING) {
        o->room = room_for(o, o->block, PIECE);
        o->pieces = (o->block + o->room - 1) / o->room;
        status = hbm_allocate_staging(o, all_bytes(o));
        if (status)
            return status;
        copy_in(o, 0);
        o->stage = REDUCING;
    }
    for (; o->piece < o->pieces; o->piece++, o->stage = REDUCING) {
        if (o->stage == REDUCING) {
            status = hbm_sync(o, 2 * o->piece + 1);
            if (!status)
                status = reduce_slice(o);
            if (status)
                return status;
            if (o->piece + 1 < o->pieces)
                copy_in(o, o->piece + 1);
            o->stage = COPYING_OUT;
        }
        status = hbm_sync(o, 2 * o->piece + 2);
        if (!status)
            status = copy_out(o);
        if (status)
            return status;
    }
    if (o->streaming)
        hbm_stream_end();
    o->comm->reduced += 2 * o->pieces; /* the same on all ranks */
    return HBM_OK;
}

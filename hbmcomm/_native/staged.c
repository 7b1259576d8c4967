/* Moves of arrays that others cannot reach: in pieces, through the staging buffers of those who give.

   Two steps per piece: it is produced, it is consumed. A piece's buffer is filled again once all
   who read it have taken the second step of it. Staging buffers are free at the start of an
   operation, because all ranks have entered it and so have left the one before. */
#include "moves.h"

#define PIECE (64 * 1024)
#define DEPTH 4

static char *staged(const move *m, int rank, uint64_t piece, int slice,
                    uint64_t room)
{
    uint64_t place = piece % DEPTH * (uint64_t)m->slices + (uint64_t)slice;
    return (char *)staging_of(m->c, rank) + place * room;
}

static int produce(const move *m, uint64_t piece, uint64_t at, uint64_t bytes,
                   uint64_t room)
{
    hbm_comm *c = m->c;
    if (!gives(m, c->rank))
        return HBM_OK;
    /* Readers of the piece that lay here before have taken the step after it. */
    for (int r = 0; piece >= DEPTH && r < c->size; r++) {
        int status = takes(m, r) ? wait_step(m, r, 2 * (piece - DEPTH) + 2) : HBM_OK;
        if (status)
            return status;
    }
    for (int s = 0; s < m->slices; s++)
        if (m->slices == 1 || s != c->rank)
            hbm_copy(staged(m, c->rank, piece, s, room),
                     (char *)m->call->send + (uint64_t)s * m->block + at, bytes);
    return HBM_OK;
}

static int consume(const move *m, uint64_t piece, uint64_t at, uint64_t bytes,
                   uint64_t room)
{
    hbm_comm *c = m->c;
    if (!takes(m, c->rank))
        return HBM_OK;
    for (int i = 0; i < c->size; i++) {
        int r = next_of(m, i);
        if (!gives(m, r))
            continue;
        char *to = (char *)m->call->recv + at;
        if (!m->root_gives)
            to += (uint64_t)r * m->block;
        if (r == c->rank) {
            const char *from = (char *)m->call->send + at;
            if (m->slices > 1)
                from += (uint64_t)r * m->block;
            hbm_copy(to, from, bytes);
            continue;
        }
        int status = wait_step(m, r, 2 * piece + 1);
        if (status)
            return status;
        carry(m, to, c->rank, staged(m, r, piece, m->slices > 1 ? c->rank : 0, room), r, bytes);
    }
    return HBM_OK;
}

int hbm_stage(const move *m)
{
    uint64_t room = STAGING_BYTES / DEPTH / (uint64_t)m->slices;
    room = (room < PIECE ? room : PIECE) / LINE * LINE;
    uint64_t pieces = (m->block + room - 1) / room;
    for (uint64_t piece = 0; piece < pieces; piece++) {
        uint64_t at = piece * room, bytes = m->block - at < room ? m->block - at : room;
        int status = produce(m, piece, at, bytes, room);
        if (status)
            return status;
        step_to(m, 2 * piece + 1);
        status = consume(m, piece, at, bytes, room);
        if (status)
            return status;
        step_to(m, 2 * piece + 2);
    }
    return HBM_OK;
}


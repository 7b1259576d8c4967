/* Where ranks are, and calls among those of this host.

   Ordering: the communicator of all ranks is locked, and so nobody else uses that of this host; its
   own lock is for waits in it. */
#include "hosts/state.h"

#include <stdlib.h>

#include "algorithms/algorithms.h"
#include "comm/failure.h"
#include "comm/lock.h"
#include "comm/progress.h"
#include "operations/operation.h"

int hbm_leader_of(const hbm_hosts *h, int host, int lane, int root)
{
    const int *leading = h->leading + h->first[host];
    if (root < 0 || h->host_of[root] != host)
        return leading[lane];
    for (int i = 0; lane; i++)
        if (leading[i] != root && !--lane)
            return leading[i];
    return root;
}

void hbm_place_ranks(hbm_hosts *h, const hbm_hosts_setup *setup)
{
    int at = 0;
    memcpy(h->host_of, setup->host_of, (size_t)h->ranks * sizeof(int));
    memcpy(h->leading, setup->leading, (size_t)h->ranks * sizeof(int));
    for (int host = 0; host < h->hosts; host++) {
        h->first[host] = at;
        for (int rank = 0; rank < h->ranks; rank++)
            if (h->host_of[rank] == host) {
                h->index_of[rank] = at - h->first[host];
                h->members[at++] = rank;
            }
    }
    h->first[h->hosts] = at;
    h->host = h->host_of[h->rank];
    h->index = h->index_of[h->rank];
}

char *hbm_take(hbm_room *room, uint64_t bytes)
{
    bytes = bytes ? bytes : 1;
    if (room->bytes < bytes) {
        free(room->at);
        room->at = malloc(bytes);
        room->bytes = room->at ? bytes : 0;
    }
    return room->at;
}

/* Starts the call that `sub` holds among the ranks of this host. */
int hbm_start_inside(hbm_hosts *h, const hbm_call *call)
{
    hbm_operation *sub = &h->sub;
    sub->comm = h->inside;
    sub->call = *call;
    sub->is_in_flight = 0;
    hbm_lock_again(h->inside);
    int status = hbm_prepare(sub);
    if (!status) {
        sub->is_note = h->o->is_note;
        if (sub->is_note) {
            sub->advance = hbm_note_path;
            sub->reads_memory = 1;
        }
        hbm_append(sub);
        hbm_progress(h->inside);
        h->is_inside = 1;
    }
    hbm_leave_wait(h->inside);
    return status ? hbm_blame(h->all, status, h->all->rank) : HBM_PENDING;
}


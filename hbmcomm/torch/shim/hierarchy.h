/* Calls of the core by a group with ranks on several hosts: calls of the core inside each
   host, and messages between hosts.

   A few ranks of each host are its carriers, equally many on all hosts: they exchange data with
   their counterparts, at the same time, and share it with the other ranks of their host. Blocks
   that go from one rank to one other (gather, scatter, alltoall) are sent by the ranks themselves.
*/
#pragma once

#include <ATen/ATen.h>

#include "host_layout.h"
#include "wire.h"

namespace hbmcomm {

class Hierarchy {
public:
    /* `inside`: the communicator of this host's ranks. `gloo`: a group of all ranks. */
    Hierarchy(hbm_comm *inside, Layout layout, c10::intrusive_ptr<c10d::Backend> gloo);

    /* As hbm_run(), with ranks, parts and roots of the whole group. Throws WireFailure. */
    int run(const hbm_call &call, Clock::time_point deadline);
    void abort() { wire_.abort(); }

    /* The number in the group of a rank of this host. */
    int rank_of(int inside) const { return layout_.inside().at(inside); }

private:
    using Parts = std::vector<hbm_part>; /* one for each rank of this host, or for each host */
    using Messages = std::vector<Message>;

    /* A call of the core did not return HBM_OK. */
    struct Failed {
        int status;
    };

    /* A range of an array that is reduced. */
    struct Slice {
        hbm_call call;     /* of this range */
        Parts parts;       /* of the carriers */
        at::Tensor part;   /* this carrier's, reduced over the ranks of this host */
        Parts pieces;      /* of it: the one that each host reduces */
        at::Tensor others; /* this host's piece, as the other hosts sent it */
    };

    void dispatch(const hbm_call &call);
    void barrier();
    void broadcast(const hbm_call &call);
    void allgather(const hbm_call &call);
    void move_directly(const hbm_call &call);
    void reduce(const hbm_call &call);
    void reduce_scatter(const hbm_call &call);

    /* Inside this host. */
    void inside(const hbm_call &call);
    Parts split(uint64_t count, uint64_t entry) const;
    void gather_inside(hbm_operation_code operation, uintptr_t send, uintptr_t recv,
                       const Parts &parts, size_t root = 0);
    at::Tensor reduce_inside(const hbm_call &call, uintptr_t from, const Parts &parts);

    /* Between hosts. */
    void exchange(const Messages &sent, const Messages &received);
    Parts pieces_of(const at::Tensor &part, uint64_t entry) const;
    void send_pieces(Slice &slice);
    void fold_pieces(const Slice &slice);
    void return_pieces(const Slice &slice);
    void share(const Slice &slice);
    Slice slice_of(const hbm_call &call, uint64_t begin, uint64_t end);
    bool is_here(int rank) const { return layout_.host_of[rank] == layout_.host; }

    hbm_comm *const comm_;
    const Layout layout_;
    Wire wire_;
    Clock::time_point deadline_; /* of the call that runs */
};

uint64_t bytes_of(const hbm_call &call); /* of one rank's block */

} // namespace hbmcomm

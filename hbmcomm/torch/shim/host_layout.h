/* Which ranks of a group are on which host. */
#pragma once

#include <cstddef>
#include <vector>

namespace hbmcomm {

struct Layout {
    /* `members`: the ranks of each host, in their order; equal on all ranks. */
    Layout(std::vector<std::vector<int>> members, int rank);

    size_t hosts() const { return members.size(); }
    const std::vector<int> &inside() const { return members[host]; }
    bool is_carrier() const { return index < carriers; }

    /* A carrier's counterpart on another host: the carrier that it exchanges messages with. */
    int counterpart(size_t other) const { return members[other][index]; }

    std::vector<std::vector<int>> members;
    std::vector<size_t> host_of, index_of; /* of each rank: its host, and its number there */
    size_t host = 0, index = 0;            /* of this rank */
    size_t carriers;                       /* so many ranks of every host, its first ones */
};

} // namespace hbmcomm

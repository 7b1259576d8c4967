#include "host_layout.h"

#include <algorithm>

namespace hbmcomm {

Layout::Layout(std::vector<std::vector<int>> given, int rank) : members(std::move(given))
{
    size_t ranks = 0;
    carriers = members[0].size();
    for (const auto &on_host : members) {
        ranks += on_host.size();
        carriers = std::min(carriers, on_host.size());
    }
    host_of.resize(ranks);
    index_of.resize(ranks);
    for (size_t h = 0; h < members.size(); h++)
        for (size_t i = 0; i < members[h].size(); i++) {
            host_of[members[h][i]] = h;
            index_of[members[h][i]] = i;
        }
    host = host_of[rank];
    index = index_of[rank];
}

} // namespace hbmcomm

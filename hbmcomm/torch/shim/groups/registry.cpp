/* Ordering: the mutex guards the list. */
#include "groups/registry.h"

namespace hbmcomm {

static std::mutex mutex;
static std::vector<c10::weak_intrusive_ptr<Group>> groups;

int64_t add_group(const c10::intrusive_ptr<Group> &group)
{
    std::lock_guard<std::mutex> lock(mutex);
    groups.emplace_back(group);
    return static_cast<int64_t>(groups.size()) - 1;
}

int64_t number_of(const Group &group)
{
    std::lock_guard<std::mutex> lock(mutex);
    for (size_t i = 0; i < groups.size(); i++)
        if (groups[i].lock().get() == &group)
            return static_cast<int64_t>(i);
    return -1;
}

c10::intrusive_ptr<Group> find_group(int64_t number)
{
    std::lock_guard<std::mutex> lock(mutex);
    c10::intrusive_ptr<Group> found;
    if (number >= 0 && static_cast<size_t>(number) < groups.size())
        found = groups[number].lock();
    TORCH_CHECK_VALUE(found, "hbm: no process group has the handle ", number,
                      "; take hbmcomm.torch.handle(group) of one that exists");
    return found;
}

void abort_groups()
{
    std::unique_lock<std::mutex> lock(mutex);
    const auto all = groups;
    lock.unlock();
    for (const auto &each : all)
        if (const auto group = each.lock())
            group->abort();
}

} // namespace hbmcomm

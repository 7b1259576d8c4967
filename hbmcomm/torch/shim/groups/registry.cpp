/* Ordering: the mutex guards the list; what a thread found last is its own. */
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

/* None has the number -1. */
static c10::weak_intrusive_ptr<Group> listed(int64_t number)
{
    std::lock_guard<std::mutex> lock(mutex);
    if (number < 0 || static_cast<size_t>(number) >= groups.size())
        return c10::weak_intrusive_ptr<Group>(c10::intrusive_ptr<Group>());
    return groups[number];
}

c10::intrusive_ptr<Group> find_group(int64_t number)
{
    static thread_local int64_t last = -1;
    static thread_local c10::weak_intrusive_ptr<Group> found = listed(last);
    auto group = found.lock();
    if (!group || last != number) {
        last = number;
        found = listed(number);
        group = found.lock();
    }
    TORCH_CHECK_VALUE(group, "hbm: no process group has the handle ", number,
                      "; take hbmcomm.torch.handle(group) of one that exists");
    return group;
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

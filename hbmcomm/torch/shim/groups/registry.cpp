/* Ordering: the mutex guards the map; a thread's `last` and `found` are its own. Weak pointers keep
   nothing of a group but its own bytes: see Group::release_resources. */
#include "groups/registry.h"

#include <map>

namespace hbmcomm {

static std::mutex &mutex = *new std::mutex; /* groups may end after static objects */
static auto &groups = *new std::map<int64_t, c10::weak_intrusive_ptr<Group>>;

void add_group(const c10::intrusive_ptr<Group> &group)
{
    static int64_t next = 0;
    std::lock_guard<std::mutex> lock(mutex);
    group->set_number(next);
    groups.emplace(next++, group);
}

void remove_group(int64_t number)
{
    std::lock_guard<std::mutex> lock(mutex);
    groups.erase(number);
}

/* A null pointer if there is no such group. */
static c10::weak_intrusive_ptr<Group> listed(int64_t number)
{
    std::lock_guard<std::mutex> lock(mutex);
    const auto found = groups.find(number);
    if (found == groups.end())
        return c10::weak_intrusive_ptr<Group>(c10::intrusive_ptr<Group>());
    return found->second;
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
    for (const auto &[number, each] : all)
        if (const auto group = each.lock())
            group->abort();
}

} // namespace hbmcomm

/* Ordering: a Wait belongs to one thread; only `closing` is set by another one. */
#include "core.h"

#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>

#include <c10/util/Exception.h>

namespace hbmcomm {

Core core;

void use_core(const std::map<std::string, uintptr_t> &addresses)
{
    const auto at = [&](const char *name) {
        const auto entry = addresses.find(name);
        TORCH_CHECK(entry != addresses.end(), "hbmcomm.torch: the core has no function ", name);
        return entry->second;
    };
#define SET(name) core.name = reinterpret_cast<decltype(core.name)>(at(#name));
    HBM_FUNCTIONS(SET)
#undef SET
}

static thread_local Wait *current = nullptr;

Wait::Wait(Clock::duration limit, const std::atomic<bool> &closing)
    : limit_(limit), closing_(closing), outer_(current), was_beside_(core.hbm_set_beside(1))
{
    current = this;
}

Wait::~Wait()
{
    current = outer_;
    core.hbm_set_beside(was_beside_);
}

bool Wait::has_passed()
{
    const auto now = Clock::now();
    deadline_ = std::min(deadline_, now + limit_);
    return late_ = now >= deadline_;
}

/* Python runs handlers of signals in its main thread only. */
static bool is_main_thread() { return syscall(SYS_gettid) == getpid(); }

int ends_wait()
{
    if (current && current->closing_.load(std::memory_order_relaxed))
        return 1;
    if (current && current->has_passed())
        return 1;
    return is_main_thread() ? core.hbm_interrupted() : 0;
}

void watch_waits() { core.hbm_on_wait(ends_wait); }

} // namespace hbmcomm

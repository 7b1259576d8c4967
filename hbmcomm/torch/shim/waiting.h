/* What ends a wait of the core early: a deadline, the end of the group, or a signal. */
#pragma once

#include <atomic>
#include <chrono>

namespace hbmcomm {

using Clock = std::chrono::steady_clock;

/* While one exists, waits of this thread end at its deadline, or once `closing` is set. */
class Wait {
public:
    Wait(Clock::time_point deadline, const std::atomic<bool> &closing);
    ~Wait();
    Wait(const Wait &) = delete;

    bool is_late() const { return late_; }

private:
    friend int ends_wait();
    const Clock::time_point deadline_;
    const std::atomic<bool> &closing_;
    Wait *const outer_;
    bool late_ = false;
};

/* Has the core ask here, from now on, whether a wait shall end. */
void watch_waits();

} // namespace hbmcomm

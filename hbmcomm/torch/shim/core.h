/* The functions of the C core, by address, and what ends its waits early.

   This module does not link the core: its state belongs to the process, and the library has loaded
   it already. Python passes the address of each function once. */
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>

extern "C" {
#include "interface.h"
int hbm_interrupted(void); /* the library's own check for signals, in Python */
}

namespace hbmcomm {

#define HBM_FUNCTIONS(X)                                                                           \
    X(hbm_run)                                                                                     \
    X(hbm_open_hosts)                                                                              \
    X(hbm_close)                                                                                   \
    X(hbm_free)                                                                                    \
    X(hbm_dtype_size)                                                                              \
    X(hbm_awaited)                                                                                 \
    X(hbm_reduces)                                                                                 \
    X(hbm_heap_array)                                                                              \
    X(hbm_heap_free)                                                                               \
    X(hbm_on_wait)                                                                                 \
    X(hbm_set_beside)                                                                              \
    X(hbm_interrupted)

struct Core {
#define DECLARE(name) decltype(&::name) name = nullptr;
    HBM_FUNCTIONS(DECLARE)
#undef DECLARE
};

extern Core core;

/* Sets `core`. Throws where an address is missing. */
void use_core(const std::map<std::string, uintptr_t> &addresses);

using Clock = std::chrono::steady_clock;

/* While one exists, waits of this thread end after `limit`, or once `closing` is set. The limit counts
   from the core's first question, some 50 ms after a wait has begun: most end before the clock is
   read. They are no calls of MPI that the program makes: with MPI_THREAD_SERIALIZED they do not poll
   MPI, because another thread may be in it. */
class Wait {
public:
    Wait(Clock::duration limit, const std::atomic<bool> &closing);
    ~Wait();
    Wait(const Wait &) = delete;

    bool is_late() const { return late_; }

private:
    friend int ends_wait();
    bool has_passed();

    const Clock::duration limit_;
    Clock::time_point deadline_ = Clock::time_point::max();
    const std::atomic<bool> &closing_;
    Wait *const outer_;
    const int was_beside_;
    bool late_ = false;
};

/* Has the core ask here, from now on, whether a wait shall end. */
void watch_waits();

} // namespace hbmcomm

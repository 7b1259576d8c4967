/* Messages to and from ranks on other hosts, by gloo. */
#pragma once

#include <deque>
#include <mutex>
#include <stdexcept>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "core.h"

namespace hbmcomm {

struct Message {
    int rank; /* the other one */
    uintptr_t address;
    uint64_t bytes;
};

/* A message did not come, or was not taken, or the group was shut down. */
struct WireFailure : std::runtime_error {
    using runtime_error::runtime_error;
};

class Wire {
public:
    /* `gloo`: a group of the same ranks. */
    explicit Wire(c10::intrusive_ptr<c10d::Backend> gloo) : gloo_(std::move(gloo)) {}

    /* Begins an exchange of messages. Those between two ranks keep their order; empty ones are left
       out. Throws WireFailure, as finish() does. */
    void start(const std::vector<Message> &sent, const std::vector<Message> &received);

    /* Returns when the messages of the exchange that was started first have come and gone. */
    void finish(Clock::time_point deadline);

    /* Forgets exchanges that were not finished. Nothing touches their memory any more. */
    void drop();

    /* Ends what another thread waits for, and all later exchanges. */
    void abort();

private:
    struct Flying {
        int rank;
        c10::intrusive_ptr<c10d::Work> work;
    };
    [[noreturn]] void fail(const std::string &with, const std::exception &error);

    const c10::intrusive_ptr<c10d::Backend> gloo_;
    std::mutex mutex_;
    std::deque<std::vector<Flying>> exchanges_; /* that have not been finished */
    bool aborted_ = false;
};

} // namespace hbmcomm

/* Messages to and from ranks on other hosts, by gloo. */
#pragma once

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

    /* Returns when all messages have come and gone. Messages between two ranks keep their order;
       empty ones are left out. Throws WireFailure. */
    void exchange(const std::vector<Message> &sent, const std::vector<Message> &received,
                  Clock::time_point deadline);

    /* Ends an exchange of another thread, and all later ones. */
    void abort();

private:
    struct Flying {
        int rank;
        c10::intrusive_ptr<c10d::Work> work;
    };
    void start(const std::vector<Message> &sent, const std::vector<Message> &received);
    void land();

    const c10::intrusive_ptr<c10d::Backend> gloo_;
    std::mutex mutex_;
    std::vector<Flying> flying_;
    bool aborted_ = false;
};

} // namespace hbmcomm

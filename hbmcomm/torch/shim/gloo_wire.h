/* The core's wire between hosts, by gloo. */
#pragma once

#include <mutex>
#include <set>

#include <torch/csrc/distributed/c10d/Backend.hpp>

#include "core.h"

namespace hbmcomm {

/* Gloo cannot tell whether a message is complete: it is waited for, at most until the deadline of
   the call. */
class GlooWire {
public:
    /* `gloo`: a group of the same ranks. */
    explicit GlooWire(c10::intrusive_ptr<c10d::Backend> gloo) : gloo_(std::move(gloo)) {}

    hbm_wire table(); /* refers to this object */
    void set_deadline(Clock::time_point deadline) { deadline_ = deadline; }

    /* Ends what another thread waits for, and all later messages. */
    void abort();

    /* Why a message failed. */
    const std::string &failure() const { return failure_; }

private:
    struct Message {
        int rank;
        c10::intrusive_ptr<c10d::Work> work;
        char empty; /* the byte of a message without any */
    };
    static GlooWire &of(void *self) { return *static_cast<GlooWire *>(self); }
    int begin(bool sends, int rank, int tag, void *at, uint64_t bytes, uint64_t *request);
    int wait(uint64_t *request);
    void forget(uint64_t *request);
    int fail(const std::string &with, const std::exception &error);

    const c10::intrusive_ptr<c10d::Backend> gloo_;
    std::mutex mutex_;
    std::set<Message *> messages_; /* under way */
    bool aborted_ = false;
    Clock::time_point deadline_;
    std::string failure_;
};

} // namespace hbmcomm

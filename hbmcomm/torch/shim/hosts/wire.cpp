/* Ordering: one thread at a time is inside exchange(); the mutex guards what abort() uses too. */
#include "hosts/wire.h"

#include <ATen/ops/from_blob.h>

namespace hbmcomm {

/* Programs may use every other tag: their messages go through the same group. */
static constexpr int wire_tag = INT_MAX;

static constexpr const char *aborted = "this process group was shut down";

static std::vector<at::Tensor> bytes_at(const Message &message)
{
    return {at::from_blob(reinterpret_cast<void *>(message.address),
                          {static_cast<int64_t>(message.bytes)}, at::kByte)};
}

void Wire::start(const std::vector<Message> &sent, const std::vector<Message> &received)
{
    std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(!aborted_, aborted);
    for (const auto &message : received)
        if (message.bytes) {
            auto tensors = bytes_at(message);
            flying_.push_back({message.rank, gloo_->recv(tensors, message.rank, wire_tag)});
        }
    for (const auto &message : sent)
        if (message.bytes) {
            auto tensors = bytes_at(message);
            flying_.push_back({message.rank, gloo_->send(tensors, message.rank, wire_tag)});
        }
}

void Wire::land()
{
    std::lock_guard<std::mutex> lock(mutex_);
    flying_.clear();
}

void Wire::exchange(const std::vector<Message> &sent, const std::vector<Message> &received,
                    Clock::time_point deadline)
{
    using std::chrono::milliseconds;
    std::string with;
    try {
        start(sent, received);
        for (const auto &each : flying_) {
            with = c10::str("to or from rank ", each.rank, " on another host: ");
            const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
            TORCH_CHECK(each.work->wait(std::max(left, milliseconds(1))), aborted);
        }
        land();
    } catch (const std::exception &error) {
        land();
        const auto *torchs = dynamic_cast<const c10::Error *>(&error);
        throw WireFailure(with + (torchs ? torchs->what_without_backtrace() : error.what()));
    }
}

void Wire::abort()
{
    std::lock_guard<std::mutex> lock(mutex_);
    aborted_ = true;
    for (const auto &each : flying_)
        each.work->abort();
}

} // namespace hbmcomm

/* Ordering: one thread at a time starts and finishes exchanges; the mutex guards what abort() uses
   too. */
#include "wire.h"

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

void Wire::drop()
{
    std::lock_guard<std::mutex> lock(mutex_);
    exchanges_.clear();
}

void Wire::fail(const std::string &with, const std::exception &error)
{
    drop();
    const auto *torchs = dynamic_cast<const c10::Error *>(&error);
    throw WireFailure(with + (torchs ? torchs->what_without_backtrace() : error.what()));
}

void Wire::start(const std::vector<Message> &sent, const std::vector<Message> &received)
try {
    std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(!aborted_, aborted);
    auto &flying = exchanges_.emplace_back();
    for (const auto &message : received)
        if (message.bytes) {
            auto tensors = bytes_at(message);
            flying.push_back({message.rank, gloo_->recv(tensors, message.rank, wire_tag)});
        }
    for (const auto &message : sent)
        if (message.bytes) {
            auto tensors = bytes_at(message);
            flying.push_back({message.rank, gloo_->send(tensors, message.rank, wire_tag)});
        }
} catch (const std::exception &error) {
    fail("", error);
}

void Wire::finish(Clock::time_point deadline)
{
    using std::chrono::milliseconds;
    std::string with;
    try {
        for (const auto &each : exchanges_.front()) {
            with = c10::str("to or from rank ", each.rank, " on another host: ");
            const auto left = std::chrono::duration_cast<milliseconds>(deadline - Clock::now());
            TORCH_CHECK(each.work->wait(std::max(left, milliseconds(1))), aborted);
        }
    } catch (const std::exception &error) {
        fail(with, error);
    }
    std::lock_guard<std::mutex> lock(mutex_);
    exchanges_.pop_front();
}

void Wire::abort()
{
    std::lock_guard<std::mutex> lock(mutex_);
    aborted_ = true;
    for (const auto &flying : exchanges_)
        for (const auto &each : flying)
            each.work->abort();
}

} // namespace hbmcomm

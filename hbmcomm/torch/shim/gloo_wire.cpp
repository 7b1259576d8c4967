/* Ordering: one thread at a time begins messages and waits for them; the mutex guards what abort()
   uses too. */
#include "gloo_wire.h"

#include <algorithm>
#include <climits>
#include <memory>

#include <ATen/ops/from_blob.h>

namespace hbmcomm {

/* Programs may use the tags below HBM_TAGS from here: their messages go through the same group. */
static constexpr int last_tag = INT_MAX;

static constexpr const char *aborted = "this process group was shut down";

hbm_wire GlooWire::table()
{
    hbm_wire table{};
    table.self = this;
    table.send = [](void *self, int rank, int tag, const void *from, uint64_t bytes,
                    uint64_t *request) {
        return of(self).begin(true, rank, tag, const_cast<void *>(from), bytes, request);
    };
    table.receive = [](void *self, int rank, int tag, void *to, uint64_t bytes, uint64_t *request) {
        return of(self).begin(false, rank, tag, to, bytes, request);
    };
    table.test = [](void *, uint64_t *, int) { return 0; };
    table.wait = [](void *self, uint64_t *request) { return of(self).wait(request); };
    table.cancel = [](void *self, uint64_t *requests, int n) {
        std::for_each_n(requests, n, [&](uint64_t &request) { of(self).forget(&request); });
    };
    table.short_bytes = table.long_bytes = table.most = 1u << 30;
    return table;
}

int GlooWire::fail(const std::string &with, const std::exception &error)
{
    const auto *torchs = dynamic_cast<const c10::Error *>(&error);
    failure_ = with + (torchs ? torchs->what_without_backtrace() : error.what());
    return 1;
}

int GlooWire::begin(bool sends, int rank, int tag, void *at, uint64_t bytes, uint64_t *request)
try {
    std::lock_guard<std::mutex> lock(mutex_);
    TORCH_CHECK(!aborted_, aborted);
    auto message = std::make_unique<Message>();
    message->rank = rank;
    std::vector<at::Tensor> tensors{at::from_blob(
        bytes ? at : &message->empty, {static_cast<int64_t>(std::max<uint64_t>(bytes, 1))},
        at::kByte)};
    message->work = sends ? gloo_->send(tensors, rank, last_tag - tag)
                          : gloo_->recv(tensors, rank, last_tag - tag);
    messages_.insert(message.get());
    *request = reinterpret_cast<uintptr_t>(message.release());
    return 0;
} catch (const std::exception &error) {
    return fail("", error);
}

int GlooWire::wait(uint64_t *request)
{
    const auto *message = reinterpret_cast<const Message *>(static_cast<uintptr_t>(*request));
    try {
        using std::chrono::milliseconds;
        const auto left = std::chrono::duration_cast<milliseconds>(deadline_ - Clock::now());
        TORCH_CHECK(message->work->wait(std::max(left, milliseconds(1))), aborted);
    } catch (const std::exception &error) {
        return fail(c10::str("to or from rank ", message->rank, " on another host: "), error);
    }
    forget(request);
    return 0;
}

/* A message that is dropped does not touch memory any more. */
void GlooWire::forget(uint64_t *request)
{
    std::lock_guard<std::mutex> lock(mutex_);
    const std::unique_ptr<Message> message(
        reinterpret_cast<Message *>(static_cast<uintptr_t>(*request)));
    messages_.erase(message.get());
    *request = 0;
}

void GlooWire::abort()
{
    std::lock_guard<std::mutex> lock(mutex_);
    aborted_ = true;
    for (const auto *message : messages_)
        message->work->abort();
}

} // namespace hbmcomm

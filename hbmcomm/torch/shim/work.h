/* Handles of operations, as torch's programs wait for them. */
#pragma once

#include <functional>

#include <torch/csrc/distributed/c10d/Work.hpp>

#include "queue.h"

namespace hbmcomm {

using Tensors = std::vector<at::Tensor>;

/* Begins the profiler's event of an operation. Returns what ends it; empty where nobody profiles. */
std::function<void()> begin_event(const char *name, const Tensors &inputs);

/* An operation that was complete when its call returned. */
class Done : public c10d::Work {
public:
    Done(c10d::OpType type, Tensors outputs);
    bool isCompleted() override { return true; }
    bool isSuccess() const override { return true; }
    bool wait(std::chrono::milliseconds) override { return true; }
    void synchronize() override {}
    Tensors result() override { return outputs_; }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

private:
    Tensors outputs_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

/* An operation that a queue's worker completes. Callbacks that the worker runs may wait for it too. */
class Queued : public c10d::Work {
public:
    Queued(c10d::OpType type, Tensors outputs, std::function<void()> end_event,
           std::function<void()> act, const Queue &queue);
    Tensors result() override { return outputs_; }
    bool wait(std::chrono::milliseconds timeout = kNoTimeout) override;
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override;

    /* Runs it, and wakes those that wait for the work; an error is kept for them. */
    void run();

    /* Completes the future if one was taken and the operation has ended. That runs its callbacks. */
    void run_callbacks();

private:
    void run_if_on_worker();

    Tensors outputs_;
    std::function<void()> act_;
    const Queue *const queue_; /* dangles once the operation is complete and the group is gone */
    c10::intrusive_ptr<c10::ivalue::Future> future_; /* made when it is first asked for */
    uint64_t called_before_ = 0; /* the number of the last operation at that time */
    bool is_future_complete_ = false;
};

} // namespace hbmcomm

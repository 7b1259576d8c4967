/* Handles of operations, as torch's programs wait for them. */
#pragma once

#include <functional>

#include <torch/csrc/distributed/c10d/Work.hpp>

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

/* An operation that a group's worker completes. */
class Queued : public c10d::Work {
public:
    Queued(c10d::OpType type, Tensors outputs, std::function<void()> end_event,
           std::function<void()> act);
    Tensors result() override { return outputs_; }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

    /* Runs it, and wakes those that wait; an error is kept for them. */
    void run();

private:
    Tensors outputs_;
    std::function<void()> act_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

} // namespace hbmcomm

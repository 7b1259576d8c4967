/* Handles of operations, and the queue of a group that completes them in order.

   An operation that need not return before it is complete, or that finds others before it, is run
   by the group's worker: one thread, which starts with the first such operation. */
#pragma once

#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

#include <torch/csrc/distributed/c10d/Work.hpp>

namespace hbmcomm {

using Tensors = std::vector<at::Tensor>;

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

/* An operation that the worker completes. */
class Queued : public c10d::Work {
public:
    Queued(c10d::OpType type, Tensors outputs, std::function<void()> act);
    Tensors result() override { return outputs_; }
    c10::intrusive_ptr<c10::ivalue::Future> getFuture() override { return future_; }

    /* Runs it, and wakes those that wait; an error is kept for them. */
    void run();

private:
    Tensors outputs_;
    std::function<void()> act_;
    c10::intrusive_ptr<c10::ivalue::Future> future_;
};

class Queue {
public:
    ~Queue();

    /* Whether nothing is queued or running: the caller then runs its operation and calls leave(). */
    bool enter();
    void leave();

    void push(c10::intrusive_ptr<Queued> work);

    /* Ends the worker once what it runs has returned; what is queued is run too, and may fail. */
    void close();

private:
    void refuse_if_closed() const;
    void serve();

    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<c10::intrusive_ptr<Queued>> waiting_;
    bool running_ = false, closed_ = false;
    std::thread worker_;
};

} // namespace hbmcomm

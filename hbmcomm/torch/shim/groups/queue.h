/* The queue of a group, which completes operations in order, one at a time.

   An operation that need not return before it is complete, or that finds others before it, is run
   by the queue's worker: one thread, which starts with the first such operation. */
#pragma once

#include <atomic>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>

namespace hbmcomm {

class Queue {
public:
    ~Queue();

    /* Whether nothing is queued or running: the caller then runs its operation and calls leave().
       Throws std::runtime_error once the queue is closed, as push() does. */
    bool enter();
    void leave();

    void push(std::function<void()> run);

    /* Ends the worker once what it runs has returned; what is queued is run too, and may fail. */
    void close();

private:
    static constexpr int CLOSED = 1 << 30;

    void refuse_if_closed() const;
    bool worker_may_go_on() const;
    void serve();

    std::atomic<int> taken_{0}; /* operations that run or wait, and CLOSED */
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<std::function<void()>> waiting_;
    std::thread worker_;
};

} // namespace hbmcomm

/* The queue of a group, which completes operations in order, one at a time.

   An operation that need not return before it is complete, or that finds others before it, is run
   by the queue's worker: one thread, which starts with the first such operation.

   The worker also runs the callbacks of these operations. A callback may call an operation or wait for
   one: the worker then runs it inside that call, since no other thread can. Such an operation comes
   after those that were called before the callback's future was taken, and before all later ones. So
   the order is the same on a rank where the future is complete when the callback is attached: there
   the callback runs at once, in the thread that attaches it. */
#pragma once

#include <atomic>
#include <condition_variable>
#include <cstdint>
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

    /* Has the worker call `run`, then `run_callbacks`. On the worker itself, in a callback: runs the
       operation before it returns, after those that come before it. */
    void push(std::function<void()> run, std::function<void()> run_callbacks);

    /* Ends the worker once what it runs has returned; what is queued is run too, and may fail. Several
       threads may call it: each returns once the worker has ended. Throws std::runtime_error on the
       worker. */
    void close();

    /* The number of the operation that was pushed last, to any queue. */
    static uint64_t last_number();

    /* The queue that this thread serves as its worker; null on other threads. */
    static Queue *of_this_thread();

    /* On the worker: runs the first operation that waits, if its number is `last` or less; its
       callbacks follow later. Returns whether it did. */
    bool run_next(uint64_t last = UINT64_MAX);

    /* While one exists, this thread runs callbacks. What they call comes after operation `number`. */
    class Callbacks {
    public:
        explicit Callbacks(uint64_t number);
        ~Callbacks();
        Callbacks(const Callbacks &) = delete;

    private:
        const uint64_t outer_;
    };

private:
    struct Operation {
        uint64_t number;
        std::function<void()> run, run_callbacks;
    };

    static constexpr int CLOSED = 1 << 30;

    void refuse_if_closed() const;
    bool worker_may_go_on() const;
    void serve();
    void run_first(std::unique_lock<std::mutex> &lock);
    int run_callbacks();

    std::atomic<int> taken_{0}; /* operations that run or wait, and CLOSED */
    std::mutex mutex_;
    std::condition_variable changed_;
    std::deque<Operation> waiting_;
    std::deque<std::function<void()>> ended_; /* callbacks of operations that were run: the worker's */
    std::thread worker_;
    std::mutex joining_; /* held by the thread that waits for the worker's end */
};

} // namespace hbmcomm

/* Ordering: every change of `taken_` acquires and releases, so that an operation sees what the ones
   before it wrote. The mutex guards the list. Who counts down for a worker that waits locks the mutex
   before it wakes the worker, which therefore sleeps or has yet to look. */
#include "groups/queue.h"

#include <pthread.h>

#include <stdexcept>

namespace hbmcomm {

Queue::~Queue() { close(); }

void Queue::refuse_if_closed() const
{
    if (taken_ & CLOSED)
        throw std::runtime_error("hbm: this process group was shut down; create a new one");
}

bool Queue::enter()
{
    int nobody = 0;
    if (taken_.compare_exchange_strong(nobody, 1))
        return true;
    refuse_if_closed();
    return false;
}

void Queue::leave()
{
    if (taken_.fetch_sub(1) == 1)
        return;
    std::lock_guard<std::mutex> lock(mutex_);
    changed_.notify_all();
}

void Queue::push(std::function<void()> run)
{
    std::unique_lock<std::mutex> lock(mutex_);
    refuse_if_closed();
    waiting_.push_back(std::move(run));
    taken_++;
    if (!worker_.joinable()) {
        worker_ = std::thread([this] { serve(); });
        pthread_setname_np(worker_.native_handle(), "hbmcomm");
    }
    changed_.notify_all();
}

void Queue::close()
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        taken_ |= CLOSED;
        changed_.notify_all();
    }
    if (worker_.joinable())
        worker_.join();
}

/* Nobody else runs an operation, and there is something to do. */
bool Queue::worker_may_go_on() const
{
    const int taken = taken_;
    return static_cast<size_t>(taken & ~CLOSED) == waiting_.size()
           && (taken & CLOSED || !waiting_.empty());
}

void Queue::serve()
{
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return worker_may_go_on(); });
        if (waiting_.empty())
            return;
        auto run = std::move(waiting_.front());
        waiting_.pop_front();
        lock.unlock();
        run();
        run = nullptr; // may hold the last reference to tensors: they are freed outside the lock
        lock.lock();
        taken_--;
    }
}

} // namespace hbmcomm

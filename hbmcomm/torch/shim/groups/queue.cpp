/* Ordering: the mutex guards all state; what an operation writes is seen by the next one because the
   mutex is taken in between. */
#include "groups/queue.h"

#include <pthread.h>

#include <stdexcept>

namespace hbmcomm {

Queue::~Queue() { close(); }

void Queue::refuse_if_closed() const
{
    if (closed_)
        throw std::runtime_error("hbm: this process group was shut down; create a new one");
}

bool Queue::enter()
{
    std::lock_guard<std::mutex> lock(mutex_);
    refuse_if_closed();
    if (running_ || !waiting_.empty())
        return false;
    return running_ = true;
}

void Queue::leave()
{
    std::lock_guard<std::mutex> lock(mutex_);
    running_ = false;
    if (worker_.joinable())
        changed_.notify_all();
}

void Queue::push(std::function<void()> run)
{
    std::unique_lock<std::mutex> lock(mutex_);
    refuse_if_closed();
    waiting_.push_back(std::move(run));
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
        closed_ = true;
        changed_.notify_all();
    }
    if (worker_.joinable())
        worker_.join();
}

void Queue::serve()
{
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return !running_ && (closed_ || !waiting_.empty()); });
        if (waiting_.empty())
            return;
        auto run = std::move(waiting_.front());
        waiting_.pop_front();
        running_ = true;
        lock.unlock();
        run();
        run = nullptr; // may hold the last reference to tensors: they are freed outside the lock
        lock.lock();
        running_ = false;
    }
}

} // namespace hbmcomm

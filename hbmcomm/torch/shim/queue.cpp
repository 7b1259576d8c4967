/* Ordering: every change of `taken_` acquires and releases, so that an operation sees what the ones
   before it wrote. The mutex guards the list. A thread that counts down for a waiting worker locks
   the mutex before it wakes the worker, which therefore sleeps or has yet to look. An operation is
   counted until its callbacks have returned: no other thread runs one between those that they
   call. */
#include "queue.h"

#include <pthread.h>

#include <stdexcept>
#include <utility>

namespace hbmcomm {

static std::atomic<uint64_t> last_pushed{0};
static thread_local Queue *served = nullptr;
static thread_local uint64_t called_before = 0;

Queue::~Queue() { close(); }

uint64_t Queue::last_number() { return last_pushed; }

Queue *Queue::of_this_thread() { return served; }

Queue::Callbacks::Callbacks(uint64_t number) : outer_(std::exchange(called_before, number)) {}

Queue::Callbacks::~Callbacks() { called_before = outer_; }

/* What was queued before close() may have callbacks that call operations. */
void Queue::refuse_if_closed() const
{
    if (taken_ & CLOSED && served != this)
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

void Queue::push(std::function<void()> run, std::function<void()> run_callbacks)
{
    if (served == this) {
        while (run_next(called_before)) {
        }
        run();
        run_callbacks();
        return;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    refuse_if_closed();
    waiting_.push_back({++last_pushed, std::move(run), std::move(run_callbacks)});
    taken_++;
    if (!worker_.joinable()) {
        worker_ = std::thread([this] { serve(); });
        pthread_setname_np(worker_.native_handle(), "hbmcomm");
    }
    changed_.notify_all();
}

void Queue::close()
{
    if (served == this)
        throw std::runtime_error("hbm: a callback cannot shut down the process group that runs it; "
                                 "do so in the thread that waits for the future");
    {
        std::lock_guard<std::mutex> lock(mutex_);
        taken_ |= CLOSED;
        changed_.notify_all();
    }
    std::lock_guard<std::mutex> lock(joining_);
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

/* Unlocks before it runs the operation. */
void Queue::run_first(std::unique_lock<std::mutex> &lock)
{
    Operation first = std::move(waiting_.front());
    waiting_.pop_front();
    lock.unlock();
    first.run();
    ended_.push_back(std::move(first.run_callbacks));
}

bool Queue::run_next(uint64_t last)
{
    std::unique_lock<std::mutex> lock(mutex_);
    if (waiting_.empty() || waiting_.front().number > last)
        return false;
    run_first(lock);
    return true;
}

/* Returns how many operations are complete now. A callback may run further operations; their callbacks
   follow after it, in the order of the operations. */
int Queue::run_callbacks()
{
    int complete = 0;
    for (; !ended_.empty(); complete++) {
        const auto callbacks = std::move(ended_.front());
        ended_.pop_front();
        callbacks();
    }
    return complete;
}

void Queue::serve()
{
    served = this;
    std::unique_lock<std::mutex> lock(mutex_);
    for (;;) {
        changed_.wait(lock, [this] { return worker_may_go_on(); });
        if (waiting_.empty())
            return;
        run_first(lock);
        const int complete = run_callbacks();
        lock.lock();
        taken_ -= complete;
    }
}

} // namespace hbmcomm

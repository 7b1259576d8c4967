/* Ordering: the queue's mutex orders operations of a group; a work's mutex publishes its end. */
#include "work.h"

#include <pthread.h>

namespace hbmcomm {

using c10::ivalue::Future;

static c10::intrusive_ptr<Future> tensors_future()
{
    return c10::make_intrusive<Future>(c10::ListType::create(c10::TensorType::get()));
}

Done::Done(c10d::OpType type, Tensors outputs) : Work(-1, type), outputs_(std::move(outputs)) {}

c10::intrusive_ptr<Future> Done::getFuture()
{
    std::lock_guard<std::mutex> lock(mutex_);
    if (!future_) {
        future_ = tensors_future();
        future_->markCompleted(c10::IValue(outputs_));
    }
    return future_;
}

Queued::Queued(c10d::OpType type, Tensors outputs, std::function<void()> act)
    : Work(-1, type), outputs_(std::move(outputs)), act_(std::move(act)), future_(tensors_future())
{
}

void Queued::run()
{
    std::exception_ptr error;
    try {
        act_();
    } catch (...) {
        error = std::current_exception();
    }
    act_ = nullptr; // inputs are freed now, as after a call that returns
    finish(error);
    if (error)
        future_->setError(error);
    else
        future_->markCompleted(c10::IValue(outputs_));
}

Queue::~Queue() { close(); }

void Queue::refuse_if_closed() const
{
    TORCH_CHECK(!closed_, "hbm: this process group was shut down; create a new one");
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

void Queue::push(c10::intrusive_ptr<Queued> work)
{
    std::unique_lock<std::mutex> lock(mutex_);
    refuse_if_closed();
    waiting_.push_back(std::move(work));
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
        auto work = std::move(waiting_.front());
        waiting_.pop_front();
        running_ = true;
        lock.unlock();
        work->run();
        work.reset(); // may be the last reference: tensors are freed outside the lock
        lock.lock();
        running_ = false;
    }
}

} // namespace hbmcomm

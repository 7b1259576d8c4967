/* Ordering: a work's mutex publishes its end, and guards its future. */
#include "work.h"

#include <ATen/ThreadLocalState.h>
#include <ATen/record_function.h>

#include "interpreter.h"

namespace hbmcomm {

using c10::ivalue::Future;

std::function<void()> begin_event(const char *name, const Tensors &inputs)
{
    if (!at::hasCallbacks())
        return {};
    auto event = std::make_shared<at::RecordFunction>(at::RecordScope::USER_SCOPE);
    if (!event->isActive())
        return {};
    event->_setAsync(); // the worker, another thread, may end it
    const std::vector<c10::IValue> shown(inputs.begin(), inputs.end());
    event->before(c10::str("hbm:", name),
                  c10::ArrayRef<const c10::IValue>(shown.data(), shown.size()));
    return at::wrapPropagateTLSState([event] { event->end(); });
}

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

Queued::Queued(c10d::OpType type, Tensors outputs, std::function<void()> end_event,
               std::function<void()> act, const Queue &queue)
    : Work(-1, type), outputs_(std::move(outputs)), act_(std::move(act)), queue_(&queue)
{
    recordFunctionEndCallback_ = std::move(end_event); // finish() calls it
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
}

void Queued::run_callbacks()
{
    {
        std::lock_guard<std::mutex> lock(mutex_);
        if (!completed_ || !future_ || is_future_complete_)
            return;
        is_future_complete_ = true;
    }
    const Queue::Callbacks calls(called_before_);
    if (exception_)
        future_->setError(exception_);
    else
        future_->markCompleted(c10::IValue(outputs_));
}

/* In a callback on the worker: until the callback returns, no other thread runs what is queued. */
void Queued::run_if_on_worker()
{
    Queue *const served = Queue::of_this_thread();
    if (served != queue_ || isCompleted())
        return;
    WithoutPython released;
    while (!isCompleted() && served->run_next()) {
    }
}

bool Queued::wait(std::chrono::milliseconds timeout)
{
    run_if_on_worker();
    return Work::wait(timeout);
}

c10::intrusive_ptr<Future> Queued::getFuture()
{
    run_if_on_worker();
    bool is_new;
    {
        std::lock_guard<std::mutex> lock(mutex_);
        is_new = !future_;
        if (is_new) {
            future_ = tensors_future();
            called_before_ = Queue::last_number();
        }
    }
    if (is_new || Queue::of_this_thread() == queue_)
        run_callbacks(); // the worker has passed by, or comes too late for a callback that waits
    return future_;
}

} // namespace hbmcomm

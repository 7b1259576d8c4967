/* Ordering: a work's mutex publishes its end. */
#include "groups/work.h"

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

} // namespace hbmcomm

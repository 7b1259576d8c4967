/* Operations that reduce data. The core reduces in the order of the ranks, so that all ranks get the
   same bits; averages are sums that every rank then divides. */
#include "group.h"

#include <torch/version.h>

namespace hbmcomm {

using c10d::OpType;
using c10d::ReduceOp;

#if TORCH_VERSION_MAJOR == 2 && TORCH_VERSION_MINOR < 13
using Factor = c10d::NCCLPreMulSumSupplement;
#else
using Factor = c10d::PreMulSumSupplement;
#endif

/* A tensor times the factor of a PREMUL_SUM, in the tensor's own type: the core takes the type of
   the elements that it writes from what this returns. */
static at::Tensor scaled(const at::Tensor &tensor, const ReduceOp &op)
{
    const auto *given = dynamic_cast<const Factor *>(op.supplement_.get());
    TORCH_CHECK_VALUE(given, "hbm: PREMUL_SUM without its factor");
    const at::Tensor &factor = given->tensor_factor;
    if (!factor.defined())
        return tensor.mul(given->double_factor).to(tensor.scalar_type());
    TORCH_CHECK_VALUE(factor.numel() == 1, "hbm: the factor of a PREMUL_SUM has ", factor.numel(),
                      " elements; give one");
    return tensor.mul(factor.reshape({})).to(tensor.scalar_type());
}

template <class T> static void divide_each(at::Tensor &sum, int ranks)
{
    T *const elements = sum.data_ptr<T>();
    for (int64_t i = 0; i < sum.numel(); i++)
        elements[i] /= ranks;
}

/* torch divides no unsigned integers of more than a byte. */
static void divide(at::Tensor &sum, int ranks)
{
    switch (sum.scalar_type()) {
    case at::kUInt16: return divide_each<uint16_t>(sum, ranks);
    case at::kUInt32: return divide_each<uint32_t>(sum, ranks);
    case at::kUInt64: return divide_each<uint64_t>(sum, ranks);
    default: break;
    }
    if (at::isIntegralType(sum.scalar_type(), false))
        sum.div_(ranks, "trunc");
    else
        sum.div_(ranks);
}

static hbm_call reducing(hbm_call call, const at::Tensor &tensor, const ReduceOp &op)
{
    call.reduction = reduction_code(op, tensor.scalar_type());
    call.dtype = reduced_dtype(tensor.scalar_type());
    return call;
}

void Group::run_allreduce(const at::Tensor &tensor, const ReduceOp &op, Limit limit)
{
    Output output(tensor, true);
    at::Tensor &dense = output.dense();
    if (op.op_ == ReduceOp::PREMUL_SUM)
        dense.copy_(scaled(dense, op));
    hbm_call call = reducing(call_of(HBM_ALLREDUCE, dense), dense, op);
    call.send = call.recv = address_of(dense);
    run(call, {}, limit);
    if (op.op_ == ReduceOp::AVG)
        divide(dense, size_);
    output.finish();
}

WorkPtr Group::allreduce(Tensors &tensors, const c10d::AllreduceOptions &options)
{
    if (!tensors.empty() && tensors[0].is_sparse())
        return allreduce_sparse(tensors, options);
    check("all_reduce", tensors);
    for (const auto &tensor : tensors)
        reduction_code(options.reduceOp, tensor.scalar_type());
    return submit(OpType::ALLREDUCE, "all_reduce", tensors, tensors, options,
                  [this, tensors, op = options.reduceOp](Limit limit) {
                      for (const auto &tensor : tensors)
                          run_allreduce(tensor, op, limit);
                  });
}

WorkPtr Group::allreduce_coalesced(Tensors &tensors, const c10d::AllreduceCoalescedOptions &options)
{
    return allreduce(tensors, options);
}

WorkPtr Group::reduce(Tensors &tensors, const c10d::ReduceOptions &options)
{
    check("reduce", tensors);
    check_root("reduce", options.rootRank);
    for (const auto &tensor : tensors)
        reduction_code(options.reduceOp, tensor.scalar_type());
    return submit(OpType::REDUCE, "reduce", tensors, tensors, options,
                  [this, tensors, op = options.reduceOp, root = options.rootRank](Limit limit) {
                      for (const auto &tensor : tensors) {
                          const bool is_root = rank_ == root;
                          Output output(tensor, true);
                          at::Tensor sent = output.dense();
                          if (op.op_ == ReduceOp::PREMUL_SUM)
                              sent = is_root ? sent.copy_(scaled(sent, op)) : scaled(sent, op);
                          hbm_call call = reducing(call_of(HBM_REDUCE, sent), sent, op);
                          call.root = static_cast<int32_t>(root);
                          call.send = address_of(sent);
                          call.recv = is_root ? call.send : 0;
                          run(call, {}, limit);
                          if (is_root && op.op_ == ReduceOp::AVG)
                              divide(output.dense(), size_);
                          if (is_root)
                              output.finish();
                      }
                  });
}

void Group::run_reduce_scatter(const at::Tensor &output, const at::Tensor &input,
                               const ReduceOp &op, Limit limit)
{
    Output received(output);
    const at::Tensor sent
        = op.op_ == ReduceOp::PREMUL_SUM ? scaled(input, op).contiguous() : input.contiguous();
    hbm_call call = reducing(call_of(HBM_REDUCE_SCATTER_BLOCK, received.dense()), sent, op);
    call.send = address_of(sent);
    call.recv = address_of(received.dense());
    run(call, sent, limit);
    if (op.op_ == ReduceOp::AVG)
        divide(received.dense(), size_);
    received.finish();
}

WorkPtr Group::_reduce_scatter_base(at::Tensor &output, at::Tensor &input,
                                    const c10d::ReduceScatterOptions &options)
{
    Tensors outputs{output}, inputs{input};
    return reduce_scatter_tensor_coalesced(outputs, inputs, options);
}

WorkPtr Group::reduce_scatter_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                               const c10d::ReduceScatterOptions &options)
{
    const char *name = "reduce_scatter_tensor";
    for (size_t i = 0; i < outputs.size(); i++) {
        check(name, {outputs[i], inputs.at(i)});
        reduction_code(options.reduceOp, outputs[i].scalar_type());
        TORCH_CHECK_VALUE(inputs[i].numel() == outputs[i].numel() * size_, "hbm: ", name,
                          ": input has ", inputs[i].numel(), " elements; ", size_,
                          " outputs of ", outputs[i].numel(), " need ",
                          outputs[i].numel() * size_);
    }
    return submit(OpType::_REDUCE_SCATTER_BASE, name, inputs, outputs, options,
                  [this, outputs, inputs, op = options.reduceOp](Limit limit) {
                      for (size_t i = 0; i < outputs.size(); i++)
                          run_reduce_scatter(outputs[i], inputs[i], op, limit);
                  });
}

/* The core takes one block after the other, so the inputs are copied into one tensor. */
WorkPtr Group::reduce_scatter(Tensors &outputs, TensorLists &inputs,
                              const c10d::ReduceScatterOptions &options)
{
    const char *name = "reduce_scatter";
    TORCH_CHECK_VALUE(outputs.size() == 1 && inputs.size() == 1, "hbm: ", name,
                      " takes one output, found ", outputs.size());
    check_blocks(name, inputs[0], outputs[0]);
    reduction_code(options.reduceOp, outputs[0].scalar_type());
    for (const auto &input : inputs[0])
        TORCH_CHECK_VALUE(input.numel() == outputs[0].numel(), "hbm: ", name, ": an input has ",
                          input.numel(), " elements, the output ", outputs[0].numel());
    return submit(OpType::REDUCE_SCATTER, name, inputs[0], outputs, options,
                  [this, output = outputs[0], list = inputs[0], op = options.reduceOp](Limit limit) {
                      Tensors flat;
                      for (const auto &input : list)
                          flat.push_back(input.reshape({-1}));
                      run_reduce_scatter(output, at::cat(flat), op, limit);
                  });
}

} // namespace hbmcomm

/* Operations that move data. */
#include "group.h"

namespace hbmcomm {

using c10d::OpType;

void Group::run_broadcast(const at::Tensor &tensor, int64_t root, Limit limit)
{
    Output output(tensor, true);
    hbm_call call = call_of(HBM_BCAST, output.dense());
    call.root = static_cast<int32_t>(root);
    call.send = call.recv = address_of(output.dense());
    run(call, {}, limit);
    output.finish();
}

WorkPtr Group::broadcast(Tensors &tensors, const c10d::BroadcastOptions &options)
{
    check("broadcast", tensors);
    check_root("broadcast", options.rootRank);
    return submit(OpType::BROADCAST, "broadcast", tensors, tensors, options,
                  [this, tensors, root = options.rootRank](Limit limit) {
                      for (const auto &tensor : tensors)
                          run_broadcast(tensor, root, limit);
                  });
}

/* ---- gathers ---- */

void Group::run_allgather(const at::Tensor &output, const at::Tensor &input, Limit limit)
{
    Output received(output);
    const at::Tensor sent = input.contiguous();
    hbm_call call = call_of(HBM_ALLGATHER, sent);
    call.send = address_of(sent);
    call.recv = address_of(received.dense());
    run(call, sent, limit);
    received.finish();
}

WorkPtr Group::_allgather_base(at::Tensor &output, at::Tensor &input,
                               const c10d::AllgatherOptions &options)
{
    Tensors outputs{output}, inputs{input};
    return allgather_into_tensor_coalesced(outputs, inputs, options);
}

WorkPtr Group::allgather_into_tensor_coalesced(Tensors &outputs, Tensors &inputs,
                                               const c10d::AllgatherOptions &options)
{
    const char *name = "all_gather_into_tensor";
    for (size_t i = 0; i < inputs.size(); i++) {
        check(name, {inputs[i], outputs.at(i)});
        TORCH_CHECK_VALUE(outputs[i].numel() == inputs[i].numel() * size_, "hbm: ", name,
                          ": output has ", outputs[i].numel(), " elements; ", size_,
                          " inputs of ", inputs[i].numel(), " need ", inputs[i].numel() * size_);
    }
    return submit(OpType::_ALLGATHER_BASE, name, inputs, outputs, options,
                  [this, outputs, inputs](Limit limit) {
                      for (size_t i = 0; i < inputs.size(); i++)
                          run_allgather(outputs[i], inputs[i], limit);
                  });
}

/* Gathers `input` of every rank into blocks, where this rank has outputs. */
void Group::gather_blocks(hbm_call call, const Tensors &outputs, const at::Tensor &input,
                          Limit limit)
{
    const at::Tensor sent = input.contiguous();
    Blocks blocks = Blocks::written(outputs);
    call.send = address_of(sent);
    if (!outputs.empty()) {
        call.recv = blocks.address();
        call.recv_parts = blocks.parts();
    }
    run(call, sent, limit);
    blocks.finish();
}

WorkPtr Group::allgather(TensorLists &outputs, Tensors &inputs,
                         const c10d::AllgatherOptions &options)
{
    TORCH_CHECK_VALUE(outputs.size() == 1 && inputs.size() == 1,
                      "hbm: all_gather takes one tensor, found ", inputs.size());
    check_blocks("all_gather", outputs[0], inputs[0]);
    return submit(OpType::ALLGATHER, "all_gather", inputs, outputs[0], options,
                  [this, output = outputs[0], input = inputs[0]](Limit limit) {
                      gather_blocks(call_of(HBM_ALLGATHERV, input), output, input, limit);
                  });
}

/* One list of outputs for each rank; each has one tensor for each input. */
WorkPtr Group::allgather_coalesced(TensorLists &outputs, Tensors &inputs,
                                   const c10d::AllgatherOptions &options)
{
    TensorLists by_input(inputs.size());
    Tensors all;
    for (size_t i = 0; i < inputs.size(); i++) {
        for (const auto &of_rank : outputs)
            by_input[i].push_back(of_rank.at(i));
        check_blocks("all_gather_coalesced", by_input[i], inputs[i]);
        all.insert(all.end(), by_input[i].begin(), by_input[i].end());
    }
    return submit(OpType::ALLGATHER_COALESCED, "all_gather_coalesced", inputs, all, options,
                  [this, by_input, inputs](Limit limit) {
                      for (size_t i = 0; i < inputs.size(); i++)
                          gather_blocks(call_of(HBM_ALLGATHERV, inputs[i]), by_input[i], inputs[i],
                                        limit);
                  });
}

WorkPtr Group::gather(TensorLists &outputs, Tensors &inputs, const c10d::GatherOptions &options)
{
    TORCH_CHECK_VALUE(inputs.size() == 1, "hbm: gather takes one tensor, found ", inputs.size());
    check("gather", inputs);
    check_root("gather", options.rootRank);
    const bool is_root = rank_ == options.rootRank;
    Tensors output;
    if (is_root) {
        TORCH_CHECK_VALUE(outputs.size() == 1, "hbm: gather takes one list of outputs at the root");
        check_blocks("gather", outputs[0], inputs[0]);
        output = outputs[0];
    } else {
        TORCH_CHECK_VALUE(outputs.empty() || outputs[0].empty(),
                          "hbm: gather takes outputs at the root only, rank ", options.rootRank);
    }
    return submit(OpType::GATHER, "gather", inputs, output, options,
                  [this, output, input = inputs[0], root = options.rootRank](Limit limit) {
                      hbm_call call = call_of(HBM_GATHERV, input);
                      call.root = static_cast<int32_t>(root);
                      gather_blocks(call, output, input, limit);
                  });
}

/* Overrides a function that torch has from 2.14 on. */
WorkPtr Group::gather_into_tensor(at::Tensor &output, at::Tensor &input,
                                  const c10d::GatherOptions &options)
{
    TensorLists outputs;
    Tensors inputs{input};
    if (rank_ == options.rootRank) {
        TORCH_CHECK_VALUE(output.is_contiguous() && output.numel() == input.numel() * size_,
                          "hbm: gather_single takes a contiguous output of ", size_,
                          " times the elements of the input; ", output.numel(), " are not ", size_,
                          " times ", input.numel());
        outputs.push_back(output.view({size_, input.numel()}).unbind());
    }
    return gather(outputs, inputs, options);
}

/* ---- scatter and alltoall ---- */

WorkPtr Group::scatter(Tensors &outputs, TensorLists &inputs, const c10d::ScatterOptions &options)
{
    TORCH_CHECK_VALUE(outputs.size() == 1, "hbm: scatter takes one output, found ", outputs.size());
    check("scatter", outputs);
    check_root("scatter", options.rootRank);
    const bool is_root = rank_ == options.rootRank;
    Tensors input;
    if (is_root) {
        TORCH_CHECK_VALUE(inputs.size() == 1, "hbm: scatter takes one list of inputs at the root");
        check_blocks("scatter", inputs[0], outputs[0]);
        input = inputs[0];
    } else {
        TORCH_CHECK_VALUE(inputs.empty() || inputs[0].empty(),
                          "hbm: scatter takes inputs at the root only, rank ", options.rootRank);
    }
    return submit(OpType::SCATTER, "scatter", input, outputs, options,
                  [this, input, output = outputs[0], root = options.rootRank](Limit limit) {
                      Output received(output);
                      Blocks blocks = Blocks::read(input);
                      hbm_call call = call_of(HBM_SCATTERV, output);
                      call.root = static_cast<int32_t>(root);
                      call.recv = address_of(received.dense());
                      if (!input.empty()) {
                          call.send = blocks.address();
                          call.send_parts = blocks.parts();
                      }
                      run(call, {}, limit);
                      received.finish();
                  });
}

/* Each rank has a block for each: `count` is the length of the one that it keeps. */
hbm_call Group::swap_call(const at::Tensor &example, const Blocks &from, const Blocks &to) const
{
    hbm_call call = call_of(HBM_ALLTOALLV, example);
    call.count = from.parts()[rank_].bytes / core.hbm_dtype_size(call.dtype);
    call.send = from.address();
    call.send_parts = from.parts();
    call.recv = to.address();
    call.recv_parts = to.parts();
    return call;
}

WorkPtr Group::alltoall(Tensors &outputs, Tensors &inputs, const c10d::AllToAllOptions &options)
{
    TORCH_CHECK_VALUE(!inputs.empty(), "hbm: all_to_all takes one tensor for each of ", size_,
                      " ranks, found 0");
    check_blocks("all_to_all", outputs, inputs[0]);
    check_blocks("all_to_all", inputs, outputs[0]);
    return submit(OpType::ALLTOALL, "all_to_all", inputs, outputs, options,
                  [this, outputs, inputs](Limit limit) {
                      Blocks sent = Blocks::read(inputs), received = Blocks::written(outputs);
                      hbm_call call = swap_call(inputs[0], sent, received);
                      run(call, {}, limit);
                      received.finish();
                  });
}

static void check_splits(const char *what, const at::Tensor &tensor,
                         const std::vector<int64_t> &splits, int ranks)
{
    TORCH_CHECK_VALUE(tensor.dim(), "hbm: all_to_all_single: the ", what, " has no dimension to "
                      "split; pass it as .view(1)");
    const int64_t rows = tensor.size(0);
    if (splits.empty()) {
        TORCH_CHECK(rows % ranks == 0, "hbm: all_to_all_single: the ", rows, " rows of the ", what,
                    " do not divide by ", ranks, " ranks; pass split sizes");
        return;
    }
    TORCH_CHECK(static_cast<int>(splits.size()) == ranks,
                "hbm: all_to_all_single: ", splits.size(), " split sizes of the ", what, " for ",
                ranks, " ranks");
    int64_t total = 0;
    for (const int64_t split : splits) {
        TORCH_CHECK(split >= 0, "hbm: all_to_all_single: a split size of the ", what, " is ", split);
        total += split;
    }
    TORCH_CHECK(total == rows, "hbm: all_to_all_single: the split sizes of the ", what, " add up to ",
                total, ", not to its ", rows, " rows");
}

void Group::run_alltoall(const at::Tensor &output, const at::Tensor &input,
                         const std::vector<int64_t> &output_splits,
                         const std::vector<int64_t> &input_splits, Limit limit)
{
    Output received(output);
    const at::Tensor sent = input.contiguous();
    const auto from = Blocks::rows(sent, input_splits, size_);
    const auto to = Blocks::rows(received.dense(), output_splits, size_);
    hbm_call call = swap_call(sent, from, to);
    run(call, sent, limit);
    received.finish();
}

WorkPtr Group::alltoall_base(at::Tensor &output, at::Tensor &input,
                             std::vector<int64_t> &output_splits,
                             std::vector<int64_t> &input_splits,
                             const c10d::AllToAllOptions &options)
{
    check("all_to_all_single", {output, input});
    check_splits("output", output, output_splits, size_);
    check_splits("input", input, input_splits, size_);
    TORCH_CHECK(!output_splits.empty() || !input_splits.empty() || output.numel() == input.numel(),
                "hbm: all_to_all_single: the output has ", output.numel(), " elements, the input ",
                input.numel(), "; pass split sizes where blocks differ in length");
    return submit(OpType::ALLTOALL_BASE, "all_to_all_single", {input}, {output}, options,
                  [this, output, input, output_splits, input_splits](Limit limit) {
                      run_alltoall(output, input, output_splits, input_splits, limit);
                  });
}

} // namespace hbmcomm

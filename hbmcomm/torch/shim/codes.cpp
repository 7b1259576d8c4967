#include "codes.h"

namespace hbmcomm {

using Op = c10d::ReduceOp;

static int code_of(at::ScalarType type)
{
    switch (type) {
    case at::kChar: return HBM_INT8;
    case at::kShort: return HBM_INT16;
    case at::kInt: return HBM_INT32;
    case at::kLong: return HBM_INT64;
    case at::kByte: return HBM_UINT8;
    case at::kUInt16: return HBM_UINT16;
    case at::kUInt32: return HBM_UINT32;
    case at::kUInt64: return HBM_UINT64;
    case at::kHalf: return HBM_FLOAT16;
    case at::kBFloat16: return HBM_BFLOAT16;
    case at::kFloat: return HBM_FLOAT32;
    case at::kDouble: return HBM_FLOAT64;
    case at::kComplexFloat: return HBM_COMPLEX64;
    case at::kComplexDouble: return HBM_COMPLEX128;
    case at::kBool: return HBM_BOOL;
    default: return -1;
    }
}

Entries moved(const at::Tensor &tensor)
{
    const int code = code_of(tensor.scalar_type());
    if (code < 0)
        return {HBM_UINT8, tensor.nbytes()};
    return {static_cast<uint8_t>(code), static_cast<uint64_t>(tensor.numel())};
}

const char *name_of(const Op &op)
{
    static const char *const names[] = {"SUM", "AVG", "PRODUCT", "MIN", "MAX", "BAND", "BOR",
                                        "BXOR", "PREMUL_SUM"};
    return op.op_ < std::size(names) ? names[op.op_] : "UNUSED";
}

static int of_numbers(Op::RedOpType op)
{
    switch (op) {
    case Op::SUM:
    case Op::AVG:
    case Op::PREMUL_SUM: return HBM_SUM;
    case Op::PRODUCT: return HBM_PROD;
    case Op::MIN: return HBM_MIN;
    case Op::MAX: return HBM_MAX;
    case Op::BAND: return HBM_BAND;
    case Op::BOR: return HBM_BOR;
    case Op::BXOR: return HBM_BXOR;
    default: return -1;
    }
}

static int of_truth(Op::RedOpType op)
{
    switch (op) {
    case Op::SUM:
    case Op::MAX:
    case Op::BOR: return HBM_LOR;
    case Op::PRODUCT:
    case Op::MIN:
    case Op::BAND: return HBM_LAND;
    case Op::BXOR: return HBM_LXOR;
    default: return -1;
    }
}

uint8_t reduction_code(const Op &op, at::ScalarType type)
{
    const int code = type == at::kBool ? of_truth(op.op_) : of_numbers(op.op_);
    const int dtype = code_of(type);
    TORCH_CHECK(code >= 0 && dtype >= 0 && core.hbm_reduces(dtype, code), "hbm: ReduceOp.",
                name_of(op), " is not defined for ", type,
                "; convert the tensor to another type, or take another reduction");
    return static_cast<uint8_t>(code);
}

uint8_t reduced_dtype(at::ScalarType type) { return static_cast<uint8_t>(code_of(type)); }

} // namespace hbmcomm

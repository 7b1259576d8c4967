/* torch.ops reads arguments by the operator's schema, whatever their types are. That takes longer than
   an operation on a few bytes. Here the types of the C++ function decide, and the usual call is read
   at once: plain tensors, all arguments by position. Everything else (fake tensors, modes, tensors that
   need gradients, keywords, wrong types) goes to torch's own binding. Both end in torch's dispatcher. */
#include "quick_calls.h"

#include <cstring>
#include <tuple>

#include <ATen/PythonTorchFunctionTLS.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include "operators.h"

namespace py = pybind11;

namespace hbmcomm {

namespace {

template <class T> struct Argument;

template <> struct Argument<int64_t> {
    static bool fits(PyObject *given)
    {
        int overflow = 1;
        if (PyLong_CheckExact(given))
            PyLong_AsLongLongAndOverflow(given, &overflow);
        return !overflow;
    }
    static int64_t read(PyObject *given) { return PyLong_AsLongLong(given); }
};

template <> struct Argument<Name> {
    static bool fits(PyObject *given)
    {
        return PyUnicode_CheckExact(given) && PyUnicode_IS_COMPACT_ASCII(given);
    }
    static Name read(PyObject *given)
    {
        return {static_cast<const char *>(PyUnicode_DATA(given)),
                static_cast<size_t>(PyUnicode_GET_LENGTH(given))};
    }
};

template <> struct Argument<const at::Tensor &> {
    static bool fits(PyObject *given)
    {
        return THPVariable_CheckExact(given)
               && !(at::GradMode::is_enabled() && read(given).requires_grad());
    }
    static const at::Tensor &read(PyObject *given) { return THPVariable_Unpack(given); }
};

template <class Operator, class = typename Operator::Type> struct Quick;

template <class Operator, class... Types> struct Quick<Operator, void(Types...)> {
    /* `own` is torch's binding of the operator. */
    static py::object binding(const py::object &own)
    {
        static PyMethodDef method{Operator::name,
                                  reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)),
                                  METH_FASTCALL | METH_KEYWORDS, nullptr};
        const py::object module = own.attr("__module__");
        return py::reinterpret_steal<py::object>(
            PyCFunction_NewEx(&method, own.ptr(), module.ptr()));
    }

private:
    using Indices = std::index_sequence_for<Types...>;

    static PyObject *call(PyObject *own, PyObject *const *given, Py_ssize_t count, PyObject *keywords)
    {
        HANDLE_TH_ERRORS
        if (count != sizeof...(Types) || keywords || at::impl::torch_function_mode_enabled()
            || !fit(given, Indices{}))
            return PyObject_Vectorcall(own, given, count, keywords);
        dispatch(given, Indices{});
        Py_RETURN_NONE;
        END_HANDLE_TH_ERRORS
    }

    template <size_t... I> static bool fit(PyObject *const *given, std::index_sequence<I...>)
    {
        return (Argument<Types>::fits(given[I]) && ...);
    }

    template <size_t... I> static void dispatch(PyObject *const *given, std::index_sequence<I...>)
    {
        static const auto found = c10::Dispatcher::singleton()
                                      .findSchemaOrThrow(Operator::name, "")
                                      .template typed<void(Types...)>();
        const std::tuple<Types...> arguments{Argument<Types>::read(given[I])...};
        py::gil_scoped_release released;
        at::AutoDispatchBelowADInplaceOrView without_gradients;
        found.call(std::get<I>(arguments)...);
    }
};

template <class Operator> void quicken_one(const py::object &operators)
{
    const py::object packet = operators.attr(strrchr(Operator::name, ':') + 1);
    if (py::hasattr(packet, "_op"))
        packet.attr("_op") = Quick<Operator>::binding(packet.attr("_op"));
}

} // namespace

void quicken(const py::object &operators)
{
    quicken_one<AllReduce>(operators);
    quicken_one<Broadcast>(operators);
    quicken_one<AllGather>(operators);
    quicken_one<ReduceScatter>(operators);
    quicken_one<AllToAll>(operators);
}

} // namespace hbmcomm

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

#include "interpreter.h"
#include "operators.h"

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
        if (!PyUnicode_CheckExact(given))
            return false;
        if (PyUnicode_AsUTF8AndSize(given, nullptr))
            return true;
        PyErr_Clear(); // a part of a character
        return false;
    }
    static Name read(PyObject *given)
    {
        Py_ssize_t length = 0;
        const char *const bytes = PyUnicode_AsUTF8AndSize(given, &length);
        return {bytes, static_cast<size_t>(length)};
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
    static Object binding(const Object &own)
    {
        static PyMethodDef method{Operator::name,
                                  reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(&call)),
                                  METH_FASTCALL | METH_KEYWORDS, nullptr};
        const Object module = checked(PyObject_GetAttrString(own.get(), "__module__"));
        return checked(PyCFunction_NewEx(&method, own.get(), module.get()));
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
        static const auto handle = c10::Dispatcher::singleton()
                                       .findSchemaOrThrow(Operator::name, "")
                                       .template typed<void(Types...)>();
        const std::tuple<Types...> arguments{Argument<Types>::read(given[I])...};
        WithoutPython released;
        at::AutoDispatchBelowADInplaceOrView without_gradients;
        handle.call(std::get<I>(arguments)...);
    }
};

template <class Operator> void quicken_one(PyObject *operators)
{
    const char *name = strrchr(Operator::name, ':') + 1;
    const Object packet = checked(PyObject_GetAttrString(operators, name));
    const Object own = owned(PyObject_GetAttrString(packet.get(), "_op"));
    if (!own)
        return PyErr_Clear();
    if (PyObject_SetAttrString(packet.get(), "_op", Quick<Operator>::binding(own).get()))
        throw_error();
}

} // namespace

void quicken(int64_t address)
{
    WithPython lock;
    PyObject *const operators = lent(address).get();
    quicken_one<AllReduce>(operators);
    quicken_one<Broadcast>(operators);
    quicken_one<AllGather>(operators);
    quicken_one<ReduceScatter>(operators);
    quicken_one<AllToAll>(operators);
}

} // namespace hbmcomm

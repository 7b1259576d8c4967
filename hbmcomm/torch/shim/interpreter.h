/* Python's interpreter: its lock, and functions that Python lends. Here and in quick_calls.cpp the shim
   calls Python, by functions and layouts of its stable ABI and a few that every Python from 3.11 on has,
   so that one build serves all of these. That excludes pybind11. */
#pragma once

#include <memory>
#include <optional>
#include <string>

#include <torch/csrc/Exceptions.h>

namespace hbmcomm {

/* While one exists, this thread holds the interpreter's lock. */
class WithPython {
public:
    ~WithPython() { PyGILState_Release(before_); }

private:
    const PyGILState_STATE before_ = PyGILState_Ensure();
};

/* While one exists, this thread has released the interpreter's lock, if it held it: what it waits for
   may need the lock to end. */
class WithoutPython {
public:
    WithoutPython()
    {
        if (Py_IsInitialized() && PyGILState_Check())
            held_ = PyEval_SaveThread();
    }
    ~WithoutPython()
    {
        if (held_)
            PyEval_RestoreThread(held_);
    }

private:
    PyThreadState *held_ = nullptr;
};

/* A reference to an object of Python, which may be dropped without the lock. After the interpreter has
   ended nothing is done: it has freed what it held. */
using Object = std::shared_ptr<PyObject>;

/* Takes a new reference that the caller has. */
inline Object owned(PyObject *object)
{
    return {object, [](PyObject *held) {
                if (!held || !Py_IsInitialized())
                    return;
                WithPython lock;
                Py_DECREF(held);
            }};
}

/* The object at an address, which Python's id() returned: the caller keeps it alive meanwhile. */
inline Object lent(int64_t address)
{
    WithPython lock;
    auto *const object = reinterpret_cast<PyObject *>(static_cast<uintptr_t>(address));
    Py_INCREF(object);
    return owned(object);
}

/* Python's error of this thread, as torch passes it on; with the lock. */
[[noreturn]] inline void throw_error()
{
    python_error error;
    PyErr_Fetch(&error.type, &error.value, &error.traceback);
    error.message = "an error of Python";
    throw error;
}

/* The result of a call; with the lock. */
inline Object checked(PyObject *result)
{
    if (!result)
        throw_error();
    return owned(result);
}

/* Text of Python; with the lock. */
inline std::string text_of(PyObject *object)
{
    const Object text = checked(PyObject_Str(object));
    Py_ssize_t length = 0;
    const char *const bytes = PyUnicode_AsUTF8AndSize(text.get(), &length);
    if (!bytes)
        throw_error();
    return {bytes, static_cast<size_t>(length)};
}

} // namespace hbmcomm

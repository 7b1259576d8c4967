/* Reads arrays that are not NumPy's: what exports a buffer (array.array, memoryview, ctypes, mmap,
   subclasses of ndarray), and torch's tensors. Python reads all that is in the least unusual.

   It reads objects of the program under Python's lock, and memory of no other rank, so it needs no
   ordering. */
#include "objects.h"

/* DLPack 1, which torch and others share: its tensor, and the table by which a type offers it. */
typedef struct {
    char *data;
    int32_t device, device_number, dimensions;
    uint8_t kind, bits;
    uint16_t lanes;
    int64_t *shape, *strides;
    uint64_t offset;
} dl_tensor;

typedef struct {
    uint32_t major, minor;
    void *previous;
    void *unused[3];
    int (*read)(PyObject *, dl_tensor *); /* the object keeps the memory */
} dl_table;

enum { DL_CPU = 1 };
enum { DL_INT, DL_UINT, DL_FLOAT, DL_BFLOAT = 4, DL_COMPLEX, DL_BOOL };

static const dl_table *torch;
static PyTypeObject *tensor_type;
static PyObject *requires_grad, *is_neg;

static int integer(int is_signed, uint64_t bytes)
{
    switch (bytes) {
    case 1: return is_signed ? HBM_INT8 : HBM_UINT8;
    case 2: return is_signed ? HBM_INT16 : HBM_UINT16;
    case 4: return is_signed ? HBM_INT32 : HBM_UINT32;
    case 8: return is_signed ? HBM_INT64 : HBM_UINT64;
    default: return -1;
    }
}

/* The dtype of a format of one value, in the order and the alignment of this machine. */
static int dtype_of_format(const char *format, uint64_t bytes)
{
    if (*format == '@' || *format == '<') /* no machine that has the core stores big ends first */
        format++;
    int is_complex = *format == 'Z';
    format += is_complex;
    if (!format[0] || format[1])
        return -1;
    switch (*format) {
    case 'e': return is_complex ? -1 : HBM_FLOAT16;
    case 'f': return is_complex ? HBM_COMPLEX64 : HBM_FLOAT32;
    case 'd': return is_complex ? HBM_COMPLEX128 : HBM_FLOAT64;
    case 'g': return is_complex ? HBM_CLONGDOUBLE : HBM_LONGDOUBLE;
    }
    if (is_complex)
        return -1;
    if (*format == '?')
        return HBM_BOOL;
    return strchr("bhilq", *format) ? integer(1, bytes)
           : strchr("BHILQ", *format) ? integer(0, bytes) : -1;
}

/* Whether the core can work on values there. Python reads empty buffers:
   MPI.IN_PLACE and MPI.BOTTOM export one. */
static int set_view(hbm_view *view, uintptr_t address, uint64_t bytes, int dtype, uint64_t size,
                    int writable)
{
    if (dtype < 0 || size != hbm_dtype_size(dtype) || !bytes || !address
        || address % hbm_alignment(dtype))
        return 0;
    hbm_set_view(view, address, bytes / size, dtype, writable);
    return 1;
}

static PyObject *open_buffer(PyObject *object, hbm_view *view)
{
    Py_buffer buffer;
    PyObject *memory = PyMemoryView_FromObject(object);
    if (!memory || PyObject_GetBuffer(memory, &buffer, PyBUF_FORMAT | PyBUF_C_CONTIGUOUS)) {
        PyErr_Clear();
        Py_XDECREF(memory);
        return NULL;
    }
    uint64_t size = (uint64_t)buffer.itemsize;
    int dtype = buffer.format ? dtype_of_format(buffer.format, size) : -1;
    int readable = set_view(view, (uintptr_t)buffer.buf, (uint64_t)buffer.len, dtype, size,
                            !buffer.readonly);
    PyBuffer_Release(&buffer); /* `memory` keeps it */
    if (readable)
        return memory;
    Py_DECREF(memory);
    return NULL;
}

/* Looks for torch, if the program has imported it. */
static int has_torch(void)
{
    if (torch)
        return 1;
    PyObject *name = PyUnicode_FromString("torch");
    PyObject *module = name ? PyImport_GetModule(name) : NULL, *type = NULL, *offer = NULL;
    if (module && (type = PyObject_GetAttrString(module, "Tensor")) && PyType_Check(type))
        offer = PyObject_GetAttrString(type, "__dlpack_c_exchange_api__");
    const dl_table *table = offer ? PyCapsule_GetPointer(offer, "dlpack_exchange_api") : NULL;
    if (table && table->major == 1 && table->read) {
        requires_grad = PyUnicode_InternFromString("requires_grad");
        is_neg = PyUnicode_InternFromString("is_neg");
        tensor_type = (PyTypeObject *)type;
        type = NULL; /* stays for ever */
        torch = requires_grad && is_neg ? table : NULL;
    }
    PyErr_Clear();
    Py_XDECREF(name);
    Py_XDECREF(module);
    Py_XDECREF(type);
    Py_XDECREF(offer);
    return torch != NULL;
}

static int is_false(PyObject *value)
{
    int answer = value == Py_False;
    Py_XDECREF(value);
    return answer;
}

static int is_in_order(const dl_tensor *t)
{
    int64_t step = 1;
    for (int i = t->dimensions; t->strides && i-- > 0;) {
        if (t->shape[i] != 1 && t->strides[i] != step)
            return 0;
        step *= t->shape[i];
    }
    return 1;
}

static int dtype_of_tensor(const dl_tensor *t)
{
    switch (t->kind) {
    case DL_INT: return integer(1, t->bits / 8);
    case DL_UINT: return integer(0, t->bits / 8);
    case DL_FLOAT: return t->bits == 64 ? HBM_FLOAT64 : t->bits == 32 ? HBM_FLOAT32
                          : t->bits == 16 ? HBM_FLOAT16 : -1;
    case DL_BOOL: return t->bits == 8 ? HBM_BOOL : -1;
    default: return -1; /* also complex numbers: a tensor may be conjugate, its memory not */
    }
}

/* A tensor that has gradients, or shows its memory negated, gets mpi4py's error or its copy. */
static PyObject *open_tensor(PyObject *tensor, hbm_view *view)
{
    dl_tensor t = {0};
    int readable = is_false(PyObject_GetAttr(tensor, requires_grad))
                   && is_false(PyObject_CallMethodObjArgs(tensor, is_neg, NULL))
                   && torch->read(tensor, &t) == 0 && t.device == DL_CPU && t.lanes == 1
                   && is_in_order(&t);
    uint64_t entries = 1, size = t.bits / 8;
    for (int i = 0; readable && i < t.dimensions; i++)
        entries *= (uint64_t)t.shape[i];
    PyErr_Clear();
    if (!readable || !set_view(view, (uintptr_t)t.data + t.offset, entries * size,
                               dtype_of_tensor(&t), size, 1))
        return NULL;
    Py_INCREF(tensor);
    return tensor;
}

PyObject *hbm_open_array(PyObject *spec, hbm_view *view)
{
    PyObject *array = spec, *memory = NULL;
    int dtype = -1;
    if (hbm_is_list(spec)) {
        int is_pair = PySequence_Size(spec) == 2;
        array = is_pair ? PySequence_GetItem(spec, 0) : NULL;
        PyObject *datatype = is_pair ? PySequence_GetItem(spec, 1) : NULL;
        dtype = datatype ? hbm_dtype_of(datatype) : -1;
        Py_XDECREF(datatype);
    }
    if (array && (array == spec || dtype >= 0)) {
        if (PyObject_CheckBuffer(array))
            memory = open_buffer(array, view);
        else if (has_torch() && Py_TYPE(array) == tensor_type)
            memory = open_tensor(array, view);
    }
    if (array != spec)
        Py_XDECREF(array);
    if (memory && dtype >= 0 && dtype != view->dtype) {
        Py_DECREF(memory);
        return NULL;
    }
    PyErr_Clear();
    return memory;
}

/* What methods.c has in other files: collectives of Python objects, of blocks of many lengths, and of
   arrays that are not NumPy's. */
#ifndef HBMCOMM_OBJECTS_H
#define HBMCOMM_OBJECTS_H

#define PY_SSIZE_T_CLEAN
#undef Py_LIMITED_API
#define Py_LIMITED_API 0x030B0000
#include <Python.h>

#include "layout.h"

int hbm_serves_objects(const hbm_comm *comm, int root);

/* The call of mpi4py's of that operation and name. */
PyObject *hbm_call_with_object(hbm_comm *comm, int operation, PyObject *name, PyObject *self,
                               PyObject *object, PyObject *op, int root);

int hbm_is_list(PyObject *spec);

/* The dtype that a datatype of mpi4py stands for; -1: none, or it is no datatype. */
int hbm_dtype_of(PyObject *datatype);

/* Reads a call of which one array or both have parts; 0: Python must read its arguments. `parts` has
   room for two of each rank, and holds those of the call. `kept` gets references to two objects that
   the call needs, or NULL, in any case. */
int hbm_read_vectors(const hbm_comm *c, int operation, PyObject *send, PyObject *recv, int root,
                     hbm_part *parts, PyObject **kept, hbm_call *call);

/* Describes an array that is not NumPy's, also as [array, datatype]. Returns a new reference to what
   keeps its memory; NULL: Python must read it. Raises nothing. */
PyObject *hbm_open_array(PyObject *spec, hbm_view *view);

#endif

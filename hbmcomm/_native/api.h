/* interface.h for C files: cffi reads that file too, so it cannot have an include guard of its
   own. */
#ifndef HBMCOMM_API_H
#define HBMCOMM_API_H

#include <stddef.h>
#include <stdint.h>

#include "interface.h"

#endif

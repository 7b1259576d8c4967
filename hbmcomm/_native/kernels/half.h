/* Conversion of float16 and bfloat16 to float and back. */
#ifndef HBMCOMM_HALF_H
#define HBMCOMM_HALF_H

#include <stdint.h>

void hbm_widen_float16(float *to, const uint16_t *from, uint64_t n);
void hbm_narrow_float16(uint16_t *to, const float *from, uint64_t n);
void hbm_widen_bfloat16(float *to, const uint16_t *from, uint64_t n);
void hbm_narrow_bfloat16(uint16_t *to, const float *from, uint64_t n);

#endif

/* Detects the vector extensions of the CPU, if the kernel saves their registers. A
   constructor runs it before any other thread exists, so it needs no ordering. */
#include "kernels/vector.h"

hbm_extensions hbm_cpu;

#if defined(__x86_64__)

#include <cpuid.h>

__attribute__((constructor)) static void find_extensions(void)
{
    unsigned a, b, c = 0, d;
    hbm_cpu.avx = __builtin_cpu_supports("avx") != 0;
    hbm_cpu.avx512f = __builtin_cpu_supports("avx512f") != 0;
    hbm_cpu.f16c = hbm_cpu.avx && __get_cpuid(1, &a, &b, &c, &d) && c & bit_F16C;
}

#elif defined(__aarch64__)

#include <sys/prctl.h>

#define NEON_BYTES 16

__attribute__((constructor)) static void find_extensions(void)
{
#if defined(PR_SVE_GET_VL)
    int sve_config = prctl(PR_SVE_GET_VL); /* negative where there is no SVE */
    hbm_cpu.long_sve = sve_config > 0 && (sve_config & PR_SVE_VL_LEN_MASK) > NEON_BYTES;
#endif
}

#endif

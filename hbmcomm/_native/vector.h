/* HBM_VECTOR: compiled once per vector extension; the loader picks what this CPU has. */
#ifndef HBMCOMM_VECTOR_H
#define HBMCOMM_VECTOR_H

#if defined(__x86_64__) && defined(__GLIBC__) && !defined(HBM_ONE_CLONE)
#define HBM_VECTOR __attribute__((target_clones("avx512f", "avx2", "default")))
#else
#define HBM_VECTOR
#endif

#endif

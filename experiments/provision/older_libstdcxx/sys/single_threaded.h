static const char __libc_single_threaded = 0; /* glibc has it from 2.32 on; 0 is right everywhere */

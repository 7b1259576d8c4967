/* What inline functions in libstdc++'s headers call and its releases before GCC 9 to 12 do not have, by
   functions that all of them have. It is compiled into what is published, and seen there alone: the program
   runs with the libstdc++ that torch has loaded. auditwheel finds what is missing here.

   It is C with C++'s names: with libstdc++'s headers a compiler would put those inline functions in the
   place of the calls below, which would then call themselves. */
#include <pthread.h>

#define EXPORTED(name) __asm__(name)
#define DEFINED(name) __asm__(name) __attribute__((visibility("hidden"), used))

/* std::__throw_bad_array_new_length() */
_Noreturn void throw_in_new(void) EXPORTED("__cxa_throw_bad_array_new_length");
_Noreturn void throw_bad_length(void) DEFINED("_ZSt28__throw_bad_array_new_lengthv");
void throw_bad_length(void) { throw_in_new(); }

/* std::ostringstream(), by its constructor with std::ios_base::out */
#define STREAM "_ZNSt7__cxx1119basic_ostringstreamIcSt11char_traitsIcESaIcEEC1"
void make_stream_in_mode(void *stream, int mode) EXPORTED(STREAM "ESt13_Ios_Openmode");
void make_stream(void *stream) DEFINED(STREAM "Ev");
void make_stream(void *stream) { make_stream_in_mode(stream, 1 << 4); }

/* std::stringbuf::str() &&, by str() const: a copy in the place of a move. A std::string may point into
   itself, so the result must be made where the caller wants it: the call is a jump. */
#define BUFFER "St7__cxx1115basic_stringbufIcSt11char_traitsIcESaIcEE3strEv"
struct string {
    void *words[4];
};
struct string copied_text(const void *buffer) EXPORTED("_ZNK" BUFFER);
struct string text(const void *buffer) DEFINED("_ZNO" BUFFER);
struct string text(const void *buffer) { __attribute__((musttail)) return copied_text(buffer); }

/* std::condition_variable::wait(std::unique_lock<std::mutex> &); both hold those of pthread alone */
struct unique_lock {
    pthread_mutex_t *mutex;
};
void wait(pthread_cond_t *condition, struct unique_lock *lock)
    DEFINED("_ZNSt18condition_variable4waitERSt11unique_lockISt5mutexE");
void wait(pthread_cond_t *condition, struct unique_lock *lock)
{
    pthread_cond_wait(condition, lock->mutex);
}

/* std::exception_ptr::_M_addref() and _M_release(), by the constructor that copies and the destructor: a
   std::exception_ptr is one pointer, and these count its references */
#define POINTER "_ZNSt15__exception_ptr13exception_ptr"
void copy_pointer(void *copy, const void *from) EXPORTED(POINTER "C1ERKS0_");
void destroy_pointer(void *pointer) EXPORTED(POINTER "D1Ev");
void add_reference(void *pointer) DEFINED(POINTER "9_M_addrefEv");
void add_reference(void *pointer)
{
    void *copy; /* is never destroyed */
    copy_pointer(&copy, pointer);
}
void release(void *pointer) DEFINED(POINTER "10_M_releaseEv");
void release(void *pointer) { destroy_pointer(pointer); }

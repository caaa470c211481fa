// The locks that asmjit takes, for a module that has one thread; Debian's wasi-libc has none.
#pragma once

typedef struct {
} pthread_mutex_t;

inline int pthread_mutex_init(pthread_mutex_t*, const void*) { return 0; }
inline int pthread_mutex_destroy(pthread_mutex_t*) { return 0; }
inline int pthread_mutex_lock(pthread_mutex_t*) { return 0; }
inline int pthread_mutex_unlock(pthread_mutex_t*) { return 0; }

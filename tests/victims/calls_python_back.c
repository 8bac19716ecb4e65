/* Loaded by ctypes, which lets go of the GIL: calls what it is given, from here, from another thread that has no Python, or later. */
#include <pthread.h>
#include <stddef.h>
#include <unistd.h>

typedef int Function(void);
typedef int OfOne(unsigned long long);

int call_back(Function* function) { return function(); }

static void* call_with_one(void* function) {
    return (void*)(size_t)((OfOne*)function)(1);
}

int call_in_thread(OfOne* function) {
    pthread_t thread;
    void* result = NULL;
    if (pthread_create(&thread, NULL, call_with_one, (void*)function) != 0) return -1;
    pthread_join(thread, &result);
    return (int)(size_t)result;
}

int call_after(OfOne* function, unsigned microseconds) {
    usleep(microseconds);
    return function(1);
}

int wait_for(unsigned microseconds) { return usleep(microseconds); }

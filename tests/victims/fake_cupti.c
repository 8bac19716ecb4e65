/* A libcupti.so.13 without a GPU: one pair of buffer callbacks (the last one set wins), kinds that are on or off, records in the
 * layout of CUPTI 13.0. What the GPU does, the program tells it: fake_cupti_kernel(NAME), fake_cupti_copy(BYTES).
 *
 * FAKE_CUPTI_REFUSES="cuptiActivityEnable=35", FAKE_CUPTI_VERSION, FAKE_CUPTI_TICKS=1: times are the counter's, not the clock's. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

typedef void Request(uint8_t** buffer, size_t* size, size_t* most);
typedef void Complete(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);

static Request* request;
static Complete* complete;
static int on[128];
static uint8_t* buffer;
static size_t size, used, dropped;
static uint32_t correlation = 100;
static int subscribed;
static uint64_t (*clock_of_client)(void);

enum { KERNEL_BYTES = 208, COPY_BYTES = 96 };

static int refused(const char* call) {
    const char* set = getenv("FAKE_CUPTI_REFUSES");
    const size_t length = strlen(call);
    return set != NULL && strncmp(set, call, length) == 0 && set[length] == '=' ? atoi(set + length + 1) : 0;
}

static uint64_t now(void) {
    struct timespec time;
    if (clock_of_client != NULL) return clock_of_client();
    if (getenv("FAKE_CUPTI_TICKS") != NULL) return __builtin_ia32_rdtsc();
    clock_gettime(CLOCK_REALTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

static void retire(void) {
    uint8_t* full = buffer;
    buffer = NULL;
    if (full != NULL) complete(NULL, 0, full, size, used);
}

static uint8_t* room(size_t bytes) {
    if (buffer != NULL && size - used < bytes) retire();
    if (buffer == NULL && request != NULL) {
        size_t most = 0;
        request(&buffer, &size, &most);
        used = 0;
    }
    if (buffer == NULL || size - used < bytes) {
        ++dropped;
        return NULL;
    }
    uint8_t* at = buffer + used;
    memset(at, 0, bytes);
    used += bytes;
    return at;
}

static void put32(uint8_t* at, size_t offset, uint32_t value) { memcpy(at + offset, &value, sizeof value); }
static void put64(uint8_t* at, size_t offset, uint64_t value) { memcpy(at + offset, &value, sizeof value); }

void fake_cupti_kernel(const char* name) {
    ++correlation;
    uint8_t* at = on[10] ? room(KERNEL_BYTES) : NULL;
    if (at == NULL) return;
    put32(at, 0, 10);
    at[6] = 42;
    put64(at, 16, now());
    put64(at, 24, now() + 1000);
    put32(at, 40, 0);
    put32(at, 48, 7);
    put32(at, 52, 8), put32(at, 56, 2), put32(at, 60, 1);
    put32(at, 64, 256), put32(at, 68, 1), put32(at, 72, 1);
    put32(at, 92, correlation);
    memcpy(at + 104, &name, sizeof name);
}

void fake_cupti_copy(uint64_t bytes) {
    ++correlation;
    uint8_t* at = on[1] ? room(COPY_BYTES) : NULL;
    if (at == NULL) return;
    put32(at, 0, 1);
    at[4] = 1;
    put64(at, 8, bytes);
    put64(at, 16, now());
    put64(at, 24, now() + 500);
    put32(at, 44, correlation);
}

void fake_cupti_drop(unsigned count) { dropped += count; }

int cuptiActivityRegisterCallbacks(Request* asked, Complete* done) {
    const int error = refused("cuptiActivityRegisterCallbacks");
    if (error == 0) request = asked, complete = done;
    return error;
}

/* As CUPTI 13.0: records of before that were not handed over are handed over without times. */
int cuptiActivityRegisterTimestampCallback(uint64_t (*clock)(void)) {
    for (size_t at = 0; buffer != NULL && at < used;) {
        uint32_t kind;
        memcpy(&kind, buffer + at, sizeof kind);
        put64(buffer, at + 16, 0);
        put64(buffer, at + 24, 0);
        at += kind == 10 ? KERNEL_BYTES : COPY_BYTES;
    }
    clock_of_client = clock;
    return 0;
}

int cuptiActivityEnable(int kind) {
    const int error = refused("cuptiActivityEnable");
    if (error == 0) on[kind] = 1;
    return error;
}

int cuptiActivityDisable(int kind) { return on[kind] = 0; }

int cuptiActivityFlushAll(uint32_t flag) {
    retire();
    return 0;
}

int cuptiActivityGetNextRecord(uint8_t* from, size_t valid, void** record) {
    size_t at = 0;
    if (*record != NULL) {
        uint32_t kind;
        memcpy(&kind, *record, sizeof kind);
        at = (size_t)((uint8_t*)*record - from) + (kind == 10 ? KERNEL_BYTES : COPY_BYTES);
    }
    if (at >= valid) return 12;
    *record = from + at;
    return 0;
}

int cuptiActivityGetNumDroppedRecords(void* context, uint32_t stream, size_t* count) {
    const int error = refused("cuptiActivityGetNumDroppedRecords");
    if (error == 0) *count = dropped, dropped = 0;
    return error;
}

int cuptiFinalize(void) {
    puts("cuptiFinalize was called");
    request = NULL, complete = NULL, buffer = NULL, subscribed = 0;
    memset(on, 0, sizeof on);
    return 0;
}

int cuptiGetVersion(uint32_t* version) {
    *version = getenv("FAKE_CUPTI_VERSION") != NULL ? (uint32_t)atoi(getenv("FAKE_CUPTI_VERSION")) : 130001;
    return 0;
}

int cuptiGetResultString(int result, const char** text) {
    static char words[32];
    snprintf(words, sizeof words, "CUPTI_WORDS_FOR_%d", result);
    *text = words;
    return 0;
}

int cuptiSubscribe(void** subscriber, void* callback, void* data) {
    if (subscribed) return 39;
    subscribed = 1;
    return 0;
}

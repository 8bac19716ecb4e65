/* Another client of CUPTI, linked with it, as libtorch_cpu.so is: does what Kineto does in a session of torch.profiler.
 * client_stop() prints how many kernels it got. */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

typedef void Request(uint8_t** buffer, size_t* size, size_t* most);
typedef void Complete(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid);
int cuptiActivityRegisterCallbacks(Request*, Complete*);
int cuptiActivityRegisterTimestampCallback(uint64_t (*)(void));
int cuptiActivityEnable(int);
int cuptiActivityDisable(int);
int cuptiActivityFlushAll(uint32_t);
int cuptiActivityGetNextRecord(uint8_t*, size_t, void**);
int cuptiActivityGetNumDroppedRecords(void*, uint32_t, size_t*);
int cuptiFinalize(void);
int cuptiSubscribe(void**, void*, void*);

static int outstanding, kernels, foreign;

static void request(uint8_t** buffer, size_t* size, size_t* most) {
    *size = 4096;
    *buffer = malloc(*size);
    *most = 0;
    ++outstanding;
}

static void complete(void* context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid) {
    void* record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == 0) kernels += *(uint32_t*)record == 10;
    foreign += size != 4096;
    --outstanding;
    free(buffer);
}

/* The nanoseconds of another clock than CUPTI's own. */
static uint64_t since_boot(void) {
    struct timespec time;
    clock_gettime(CLOCK_BOOTTIME, &time);
    return (uint64_t)time.tv_sec * 1000000000U + (uint64_t)time.tv_nsec;
}

void client_start(void) {
    kernels = 0;
    if (getenv("CLIENT_CLOCK") != NULL) cuptiActivityRegisterTimestampCallback(since_boot);
    cuptiActivityRegisterCallbacks(request, complete);
    cuptiActivityEnable(1);
    cuptiActivityEnable(2);
    cuptiActivityEnable(10);
}

/* Kineto takes a session without a buffer outstanding for one in which nothing happened. */
void client_stop(void) {
    size_t dropped = 0;
    const int happened = outstanding > 0;
    cuptiActivityDisable(1);
    cuptiActivityDisable(2);
    cuptiActivityDisable(10);
    cuptiActivityFlushAll(1);
    const int error = cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
    printf("the client got %d kernels, %d buffers of others, dropped %d/%zu\n", happened ? kernels : 0, foreign, error, dropped);
}

void client_finalize(void) { printf("finalize: %d\n", cuptiFinalize()); }

void client_subscribe(void) {
    void* subscriber;
    printf("subscribe: %d\n", cuptiSubscribe(&subscriber, NULL, NULL));
}

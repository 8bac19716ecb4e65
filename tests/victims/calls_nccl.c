/* Part of a program that uses NCCL: made several times, each linked with a libnccl of its own, in all the ways that callers are linked.
 * -DCALLER="name" says which. call_nccl() says what each function of its NCCL gave. */
#include <stddef.h>
#include <stdio.h>
#include <string.h>

typedef struct { char bytes[128]; } ncclUniqueId;
int ncclGetVersion(int*);
int ncclGetUniqueId(ncclUniqueId*);
int ncclCommInitRank(void**, int, ncclUniqueId, int);
int ncclCommAbort(void*);
int ncclCommGetAsyncError(void*, int*);
int ncclAllReduce(const void*, void*, size_t, int, int, void*, void*);
const char* ncclGetErrorString(int);
const char* ncclGetLastError(void*);

void call_nccl(void) {
    ncclUniqueId id;
    void* comm = NULL;
    int version = 0, async = 0;
    memset(&id, 0, sizeof id);
    printf("%s\n", CALLER);
    printf("  version %d", ncclGetVersion(&version));
    printf(" %d\n", version);
    printf("  id %d", ncclGetUniqueId(&id));
    printf(" %s\n", id.bytes);
    printf("  init %d", ncclCommInitRank(&comm, 2, id, 1));
    printf(" %s\n", comm == NULL ? "no communicator" : (char*)comm);
    printf("  reduce %d\n", ncclAllReduce(id.bytes, id.bytes, 7, 8, 9, comm, (void*)10));
    printf("  async %d", ncclCommGetAsyncError(comm, &async));
    printf(" %d\n", async);
    printf("  abort %d\n", ncclCommAbort(comm));
    printf("  %s, %s\n", ncclGetErrorString(1), ncclGetLastError(NULL));
}

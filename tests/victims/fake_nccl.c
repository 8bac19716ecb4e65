/* A libnccl.so.2 without any GPU: -DWHICH="name" says which. FAKE_NCCL_FAILS="ncclAllReduce=2 …": which functions give an error;
 * FAKE_NCCL_ASYNC: what ncclCommGetAsyncError tells. FAKE_NCCL_HANGS: ncclCommInitRank does not return. Each function says on stdout that it was called, with its arguments. */
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef struct { char bytes[128]; } ncclUniqueId;

static int result_of(const char* name) {
    const char* fails = getenv("FAKE_NCCL_FAILS");
    const char* at = fails == NULL ? NULL : strstr(fails, name);
    return at == NULL ? 0 : atoi(at + strlen(name) + 1);
}

int ncclGetVersion(int* version) { *version = 22907; return 0; }
const char* ncclGetErrorString(int error) { static char words[64]; sprintf(words, "words for %d of " WHICH, error); return words; }
const char* ncclGetLastError(void* comm) { return "last warning of " WHICH; }
int ncclGetUniqueId(ncclUniqueId* id) { strcpy(id->bytes, "id of " WHICH); return result_of("ncclGetUniqueId"); }
int ncclCommInitRank(void** comm, int ranks, ncclUniqueId id, int rank) {
    const int result = result_of("ncclCommInitRank");
    printf("[%s, %d of %d by %s]", WHICH, rank, ranks, id.bytes);
    if (getenv("FAKE_NCCL_HANGS") != NULL) kill(getpid(), SIGKILL);    /* as a launcher does in the end */
    if (result == 0) *comm = WHICH;
    return result;
}
int ncclCommAbort(void* comm) { printf("[abort %s]", comm == NULL ? "none" : (char*)comm); return result_of("ncclCommAbort"); }
int ncclCommGetAsyncError(void* comm, int* error) {
    *error = getenv("FAKE_NCCL_ASYNC") == NULL ? 0 : atoi(getenv("FAKE_NCCL_ASYNC"));
    return 0;
}
int ncclAllReduce(const void* from, void* to, size_t count, int type, int op, void* comm, void* stream) {
    printf("[%s %s, %zu %d %d %s %zu]", WHICH, (const char*)from, count, type, op, comm == NULL ? "none" : (char*)comm, (size_t)stream);
    return result_of("ncclAllReduce");
}

/* opens_callers [now|lazy FILE]… : loads each caller of NCCL apart from the others (RTLD_LOCAL) and lets it call; then asks for NCCL in the
 * ways in which programs find out whether it is there. "sym FILE": by a handle and dlsym. "status N": the status to end with. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct { char bytes[128]; } ncclUniqueId;
extern void call_nccl(void) __attribute__((weak));
extern int ncclGetVersion(int*) __attribute__((weak));

int main(int argc, char** argv) {
    int status = 0;
    setvbuf(stdout, NULL, _IONBF, 0);
    if (call_nccl != NULL) call_nccl();
    for (int i = 1; i + 1 < argc; i += 2) {
        if (strcmp(argv[i], "status") == 0) {
            status = atoi(argv[i + 1]);
            continue;
        }
        void* handle = dlopen(argv[i + 1], (strcmp(argv[i], "lazy") == 0 ? RTLD_LAZY : RTLD_NOW) | RTLD_LOCAL);
        if (handle == NULL) {
            printf("%s\n", dlerror());
            return 99;
        }
        dlopen("libc.so.6", RTLD_NOW);                     /* a program goes on loading */
        if (strcmp(argv[i], "sym") == 0) {
            int (*init)(void**, int, ncclUniqueId, int) = (int (*)(void**, int, ncclUniqueId, int))dlsym(handle, "ncclCommInitRank");
            int (*none)(void) = (int (*)(void))dlsym(handle, "ncclCommSplit");
            ncclUniqueId id;
            void* comm = NULL;
            strcpy(id.bytes, "own id");
            printf("dlsym: %d", init(&comm, 3, id, 2));
            printf(" %s, ncclCommSplit %s\n", (char*)comm, none == NULL ? "absent" : "there");
        } else {
            ((void (*)(void))dlsym(handle, "call_nccl"))();
        }
    }
    printf("weak %d, default %d, next %d, program %d\n", ncclGetVersion != NULL, dlsym(RTLD_DEFAULT, "ncclGetVersion") != NULL,
           dlsym(RTLD_NEXT, "ncclCommInitRank") != NULL, dlsym(dlopen(NULL, RTLD_NOW), "ncclCommInitRank") != NULL);
    return status;
}

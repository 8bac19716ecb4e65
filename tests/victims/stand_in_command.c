/* Stands in for the command beside the shim: writes what it was started with to the file stand-in.N in CUDIAG_DIR (N: its pid),
 * after CUDIAG_STAND_IN_MS, and ends with the status CUDIAG_STAND_IN_STATUS. */
#define _GNU_SOURCE
#include <dirent.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

extern char** environ;

int main(int count, char** arguments) {
    char path[4096];
    const char* ms = getenv("CUDIAG_STAND_IN_MS");
    const char* status = getenv("CUDIAG_STAND_IN_STATUS");
    if (ms != NULL) usleep((useconds_t)atoi(ms) * 1000);
    snprintf(path, sizeof path, "%s/../stand-in.%d", getenv("CUDIAG_DIR"), (int)getpid());
    DIR* directory = opendir("/proc/self/fd");
    FILE* file = fopen(path, "w");
    if (file == NULL || directory == NULL) return 9;
    for (int i = 0; i < count; ++i) fprintf(file, "argument %s\n", arguments[i]);
    for (char** at = environ; *at != NULL; ++at) fprintf(file, "variable %s\n", *at);
    for (const struct dirent* entry; (entry = readdir(directory)) != NULL;) {
        char link[64], target[4096] = "";
        const int number = atoi(entry->d_name);
        if (entry->d_name[0] == '.' || number == dirfd(directory) || number == fileno(file)) continue;
        snprintf(link, sizeof link, "/proc/self/fd/%d", number);
        if (readlink(link, target, sizeof target - 1) < 0) strcpy(target, "?");
        fprintf(file, "descriptor %d %s\n", number, target);
    }
    fprintf(file, "is stdout stderr %d\n", write(1, "", 0) == 0);
    fclose(file);
    fputs("stand-in speaks\n", stdout);
    fflush(stdout);
    return status != NULL ? atoi(status) : 0;
}

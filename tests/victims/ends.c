/* Reads the text of a load of argv[1], then ends the way argv[2] says, with status argv[3]. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int late_status;

static void later(void) {
    _exit(late_status);
}

static void back(int number) {
    (void)number;
    puts("handled");
    fflush(stdout);
    _exit(late_status);
}

int main(int count, char** arguments) {
    if (count < 4) return 99;
    const char* way = arguments[2];
    const int status = late_status = atoi(arguments[3]);
    if (arguments[1][0] != '\0') puts(dlopen(arguments[1], RTLD_NOW) != NULL ? "there" : dlerror());
    fflush(stdout);
    if (strcmp(way, "exit") == 0) exit(status);
    if (strcmp(way, "_exit") == 0) _exit(status);
    if (strcmp(way, "_Exit") == 0) _Exit(status);
    if (strcmp(way, "quick_exit") == 0) quick_exit(status);
    if (strcmp(way, "abort") == 0) abort();
    if (strcmp(way, "abort-handled") == 0) signal(SIGABRT, back), abort();
    if (strcmp(way, "kill") == 0) raise(SIGKILL);
    if (strcmp(way, "segv") == 0) raise(SIGSEGV);
    if (strcmp(way, "atexit") == 0) atexit(later), exit(0);
    if (strcmp(way, "exec") == 0) execl("/bin/sh", "sh", "-c", "exit \"$1\"", "sh", arguments[3], (char*)NULL);
    if (strcmp(way, "exec-absent") == 0) execl("/absent/program", "program", (char*)NULL);
    return status;
}

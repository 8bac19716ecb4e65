/* Prints what a program can see of itself: descriptors, environment, signal actions and mask, children, limits, threads. With
 * argv[1] "fail" it first makes the shim work (a load of a library that breaks, whose text it reads), and looks then. */
#define _GNU_SOURCE
#include <dirent.h>
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;
static int child_signals;

static void on_child(int number) {
    (void)number;
    ++child_signals;
}

static void list(const char* path) {
    DIR* directory = opendir(path);
    int count = 0;
    for (const struct dirent* entry; directory != NULL && (entry = readdir(directory)) != NULL;) count += entry->d_name[0] != '.';
    printf("%s: %d\n", path, count);
    if (directory != NULL) closedir(directory);
}

int main(int count, char** arguments) {
    struct sigaction action = {.sa_handler = on_child};
    sigaction(SIGCHLD, &action, NULL);
    if (count > 1 && strcmp(arguments[1], "fail") == 0) {
        puts(dlopen(arguments[2], RTLD_NOW) != NULL ? "there" : dlerror());
    }
    for (char** at = environ; *at != NULL; ++at) {
        if (strncmp(*at, "LD_PRELOAD=", 11) != 0 && strncmp(*at, "CUDIAG", 6) != 0) puts(*at);
    }
    list("/proc/self/fd");
    list("/proc/self/task");
    for (int number = 1; number < 65; ++number) {
        struct sigaction now;
        if (sigaction(number, NULL, &now) == 0 && now.sa_handler != SIG_DFL) {
            printf("signal %d: %s flags %x\n", number, now.sa_handler == SIG_IGN ? "ignored" : "handled", now.sa_flags & 0xfbffffff);
        }
    }
    sigset_t mask;
    sigprocmask(SIG_BLOCK, NULL, &mask);
    for (int number = 1; number < 65; ++number) {
        if (sigismember(&mask, number) == 1) printf("blocked %d\n", number);
    }
    int status = 0;
    errno = 0;
    const pid_t child = waitpid(-1, &status, 0);
    printf("waitpid %d errno %d\n", child > 0 ? 1 : (int)child, errno);
    errno = 0;
    printf("wait %d", wait(NULL) > 0 ? 1 : -1);
    printf(" errno %d, %d SIGCHLD\n", errno, child_signals);
    struct rlimit limit;
    for (int i = 0; i < RLIM_NLIMITS; ++i) {
        if (getrlimit(i, &limit) == 0) printf("limit %d %ld\n", i, (long)limit.rlim_cur);
    }
    fflush(stdout);
    return count > 3 ? atoi(arguments[3]) : 0;
}

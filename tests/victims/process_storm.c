/* Children by fork, vfork and exec, argv[1] rounds each, some ending well, some not, some by a signal; the parent fails a load
 * first and last. Everything that wait tells is printed. argv[2] is the program to exec. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void fails(const char* name) {
    const void* handle = dlopen(name, RTLD_NOW);
    const char* text = dlerror();
    printf("%d failed %s: %s\n", handle == NULL, name, text != NULL ? text : "(none)");
    fflush(stdout);
}

static void reap(const char* what, pid_t child) {
    int status = -1;
    const pid_t got = waitpid(child, &status, 0);
    printf("%s: %s status %x\n", what, got == child ? "own child" : "?", status);
    fflush(stdout);
}

int main(int count, char** arguments) {
    const int rounds = count > 1 ? atoi(arguments[1]) : 3;
    char* const wrong[] = {"absent", NULL};
    char* const right[] = {"sh", "-c", "exit 5", NULL};
    fails("/absent/first.so");
    for (int round = 0; round < rounds; ++round) {
        pid_t child = fork();
        if (child == 0) {
            fails("/absent/in-fork-child.so");
            _exit(4);
        }
        reap("fork", child);
        child = fork();
        if (child == 0) {
            exit(0);
        }
        reap("fork and exit", child);
        child = fork();
        if (child == 0) {
            raise(SIGKILL);
        }
        reap("fork and kill", child);
        child = vfork();
        if (child == 0) {
            execve("/absent/program", wrong, environ);
            execvp("absent-program", wrong);
            _exit(127);
        }
        reap("vfork and no exec", child);
        child = vfork();
        if (child == 0) {
            execv("/bin/sh", right);
            _exit(127);
        }
        reap("vfork and exec", child);
        child = fork();
        if (child == 0) {
            fails("/absent/before-exec.so");
            execl("/bin/sh", "sh", "-c", "exit \"$1\"", "sh", "7", (char*)NULL);
            _exit(127);
        }
        reap("fork, fail and execl", child);
        child = fork();
        if (child == 0) {
            char* const own[] = {"A=b", NULL};
            execle("/bin/sh", "sh", "-c", "test \"$A\" = b && exit 11", (char*)NULL, own);
            _exit(127);
        }
        reap("execle", child);
        child = fork();
        if (child == 0) {
            execlp("sh", "sh", "-c", "exit 12", (char*)NULL);
            _exit(127);
        }
        reap("execlp", child);
    }
    fails("/absent/last.so");
    return 9;
}

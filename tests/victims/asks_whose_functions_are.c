/* Says of each function that the shim stands before, and of one that it does not, in which file dladdr finds it and under which name. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

static void say(const char* name, void* function) {
    Dl_info info = {0};
    const int found = dladdr(function, &info);
    printf("%s %s %s\n", name, found ? info.dli_fname : "nowhere", found && info.dli_sname != NULL ? info.dli_sname : "");
}

int main(void) {
    say("dlopen", (void*)dlopen);
    say("dlsym", (void*)dlsym);
    say("dladdr", (void*)dladdr);
    say("execve", (void*)execve);
    say("abort", (void*)abort);
    say("open", (void*)open);
    say("waitpid", (void*)waitpid);
    say("getenv", (void*)getenv);
    return 0;
}

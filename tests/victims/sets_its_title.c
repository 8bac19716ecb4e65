/* Overwrites its arguments and environment where they lie, as setproctitle does, then fails a load and starts argv[1] with the
 * rest of its arguments, if there is one. */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

extern char** environ;

int main(int count, char** arguments) {
    char* own[16] = {NULL};
    char** variables = calloc(1024, sizeof *variables);
    char* end = NULL;
    int i = 0;
    for (int k = 1; k < count && k < 16; ++k) own[k - 1] = strdup(arguments[k]);
    for (; environ[i] != NULL && i < 1023; ++i) {
        end = environ[i] + strlen(environ[i]);
        variables[i] = strdup(environ[i]);
    }
    memset(arguments[0], 'x', (size_t)(end - arguments[0]));
    environ = variables;
    puts(dlopen("/absent/titled.so", RTLD_NOW) != NULL ? "there" : dlerror());
    fflush(stdout);
    if (own[0] != NULL) {
        const pid_t child = fork();
        if (child == 0) {
            execv(own[0], own);
            _exit(127);
        }
        (void)wait(NULL);
    }
    return 4;
}

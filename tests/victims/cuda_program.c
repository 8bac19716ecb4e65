/* Linked with a library of CUDA's name, it starts children that cannot exec (as subprocess does, by vfork), or ends badly itself:
 * argv[1] rounds of vfork, argv[2] the status. Then one failed load. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

const char* which(void);

int main(int count, char** arguments) {
    const int rounds = count > 1 ? atoi(arguments[1]) : 0;
    char* const nothing[] = {"absent", NULL};
    puts(which());
    for (int i = 0; i < rounds; ++i) {
        int status = 0;
        const pid_t child = vfork();
        if (child == 0) {
            execv("/absent/program", nothing);
            _exit(255);
        }
        waitpid(child, &status, 0);
        printf("status %x\n", status);
        const pid_t second = fork();
        if (second == 0) {
            execv("/absent/program", nothing);
            _exit(255);
        }
        waitpid(second, &status, 0);
        printf("status %x\n", status);
    }
    if (count > 3) {
        puts(dlopen(arguments[3], RTLD_NOW) != NULL ? "there" : dlerror());
    }
    return count > 2 ? atoi(arguments[2]) : 0;
}

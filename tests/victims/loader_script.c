/* Does what the lines of its standard input say with the dynamic loader, and prints what came of each. One handle is current.
 *
 *   open MODE NAME      dlopen from the program; NAME "(null)" and "(empty)" are what they say
 *   via MODE NAME       dlopen from inside the current library (opens_from_here.c); the result becomes current
 *   mopen NS MODE NAME  dlmopen; NS: base, new, or last (that of the current handle)
 *   error               dlerror
 *   sym NAME            dlsym in the current handle;  default NAME, next NAME: RTLD_DEFAULT, RTLD_NEXT;  vsym NAME VERSION
 *   close, badclose     dlclose of the current handle, of one that was never open
 *   errno N             sets errno, opens a missing file, prints whether errno is what dlopen leaves
 *   others              calls that the shim stands before too, with an error still pending: it must stay so
 *   exit N              the last line
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <link.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

static void* current;

static int mode_of(const char* words) {
    int mode = 0;
    if (strstr(words, "lazy")) mode |= RTLD_LAZY;
    if (strstr(words, "now")) mode |= RTLD_NOW;
    if (strstr(words, "global")) mode |= RTLD_GLOBAL;
    if (strstr(words, "noload")) mode |= RTLD_NOLOAD;
    if (strstr(words, "nodelete")) mode |= RTLD_NODELETE;
    if (strstr(words, "deepbind")) mode |= RTLD_DEEPBIND;
    return mode;
}

static const char* name_of(const char* word) {
    return strcmp(word, "(null)") == 0 ? NULL : strcmp(word, "(empty)") == 0 ? "" : word;
}

static void show(void* handle) {
    struct link_map* map = NULL;
    if (handle == NULL) {
        puts("  null");
        return;
    }
    current = handle;
    if (dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) map = NULL;
    const char* (*which)(void) = (const char* (*)(void))dlsym(handle, "which");
    if (which == NULL) (void)dlerror();
    printf("  %s, which %s\n", map != NULL ? map->l_name : "?", which != NULL ? which() : "-");
}

int main(void) {
    static char line[8192], a[4096], b[4096], c[4096];
    setvbuf(stdout, NULL, _IOLBF, 0);
    while (fgets(line, sizeof line, stdin) != NULL) {
        char verb[32] = "";
        a[0] = b[0] = c[0] = '\0';
        if (sscanf(line, "%31s %4095s %4095s %4095s", verb, a, b, c) < 1) continue;
        printf("%s", line);
        if (strcmp(verb, "open") == 0) {
            show(dlopen(name_of(b), mode_of(a)));
        } else if (strcmp(verb, "via") == 0) {
            void* (*open_from_here)(const char*, int) = (void* (*)(const char*, int))dlsym(current, "open_from_here");
            if (open_from_here != NULL) show(open_from_here(name_of(b), mode_of(a)));
        } else if (strcmp(verb, "mopen") == 0) {
            Lmid_t space = LM_ID_BASE;
            if (strcmp(a, "new") == 0) space = LM_ID_NEWLM;
            if (strcmp(a, "last") == 0) (void)dlinfo(current, RTLD_DI_LMID, &space);
            if (strcmp(a, "bad") == 0) space = 77;
            show(dlmopen(space, name_of(c), mode_of(b)));
        } else if (strcmp(verb, "error") == 0) {
            const char* text = dlerror();
            printf("  %s\n", text != NULL ? text : "(none)");
        } else if (strcmp(verb, "sym") == 0) {
            puts(dlsym(current, a) != NULL ? "  there" : "  null");
        } else if (strcmp(verb, "vsym") == 0) {
            puts(dlvsym(current, a, b) != NULL ? "  there" : "  null");
        } else if (strcmp(verb, "default") == 0) {
            puts(dlsym(RTLD_DEFAULT, a) != NULL ? "  there" : "  null");
        } else if (strcmp(verb, "next") == 0) {
            puts(dlsym(RTLD_NEXT, a) != NULL ? "  there" : "  null");
        } else if (strcmp(verb, "close") == 0) {
            printf("  %d\n", dlclose(current));
        } else if (strcmp(verb, "badclose") == 0) {
            static char nothing[4096];
            puts(dlclose(nothing) != 0 ? "  refused" : "  closed");
        } else if (strcmp(verb, "errno") == 0) {
            errno = atoi(a);
            (void)dlopen("libthis-is-absent.so", RTLD_NOW);
            printf("  %d after dlopen\n", errno);
            errno = atoi(a);
            const char* text = dlerror();
            printf("  %d after dlerror: %s\n", errno, text != NULL ? text : "(none)");
        } else if (strcmp(verb, "others") == 0) {
            struct sigaction action;
            char* const nothing[] = {"absent", NULL};
            int status = 0;
            errno = 0;
            printf("  %d ", sigaction(SIGINT, NULL, &action));
            printf("%d ", waitpid(-1, &status, WNOHANG));
            printf("%d ", execv("/absent/program", nothing));
            printf("%d ", execlp("absent-program", "absent", (char*)NULL));
            printf("errno %d ", errno);
            const pid_t child = fork();
            if (child == 0) _exit(0);
            printf("%d %x\n", wait(&status) == child, status);
        } else if (strcmp(verb, "exit") == 0) {
            return atoi(a);
        } else {
            puts("  no such verb");
        }
    }
    return 0;
}

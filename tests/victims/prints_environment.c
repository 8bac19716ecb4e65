/* env: a line for each variable, as they are when main begins. */
#include <stdio.h>

extern char** environ;

int main(void) {
    for (char** variable = environ; *variable != NULL; ++variable) puts(*variable);
    return 0;
}

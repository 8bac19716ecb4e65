#include "shim/own_file.h"

#include <fcntl.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include "shim/text.h"

namespace cudiag {
namespace {

constexpr size_t kPath = 4096;

}  // namespace

bool own_path(char* path, size_t size) {
    const int maps = openat(AT_FDCWD, "/proc/self/maps", O_RDONLY | O_CLOEXEC);
    if (maps < 0) {
        return false;
    }
    const auto wanted = reinterpret_cast<uintptr_t>(&own_path);
    static char buffer[16384];
    size_t have = 0;
    bool found = false;
    for (long got = 1; got > 0 && !found;) {
        got = read(maps, buffer + have, sizeof buffer - 1 - have);
        have += got > 0 ? static_cast<size_t>(got) : 0;
        buffer[have] = '\0';
        char* line = buffer;
        for (char* end = strchr(line, '\n'); end != nullptr && !found;
             line = end + 1, end = strchr(line, '\n')) {
            *end = '\0';
            uintptr_t bounds[2] = {0, 0};
            const char* at = line;
            for (uintptr_t& bound : bounds) {  // begin-end, hexadecimal
                for (; *at != '-' && *at != ' ' && *at != '\0'; ++at) {
                    bound = bound * 16 +
                            static_cast<uintptr_t>(*at <= '9' ? *at - '0' : *at - 'a' + 10);
                }
                at += *at != '\0' ? 1 : 0;
            }
            const char* file = strchr(at, '/');
            if (wanted >= bounds[0] && wanted < bounds[1] && file != nullptr) {
                Text text{path, size};
                text.add(file);
                found = !text.cut();
            }
        }
        have = strlen(line);
        memmove(buffer, line, have + 1);
        if (have >= sizeof buffer - 1) {
            have = 0;  // a line longer than any path
        }
    }
    (void)close(maps);
    return found;
}

bool own_neighbour(const char* place, char* path, size_t size) {
    static char self[kPath];
    if (!own_path(self, sizeof self)) {
        return false;
    }
    char* const slash = strrchr(self, '/');
    slash[1] = '\0';
    Text text{path, size};
    text.add(self).add(place);
    return !text.cut();
}

}  // namespace cudiag

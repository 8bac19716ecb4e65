// The mapped modules of a process as one LD_PRELOAD value.
#pragma once

#include <map>
#include <string>
#include <vector>

namespace cudiag {

// ld.so splits LD_PRELOAD at spaces and colons and cannot be told otherwise, and the kernel takes
// no variable over 128 KiB. A directory whose path is awkward is reached through a link in a
// temporary directory of ours: since the link stands for the directory, "$ORIGIN/.." still means
// the true parent. Removes its links when it ends.
class Preloads {
  public:
    Preloads() = default;
    ~Preloads();
    Preloads(const Preloads&) = delete;
    Preloads& operator=(const Preloads&) = delete;

    // False if the file can not be named to ld.so (a space or colon in its own name, no temporary
    // directory).
    bool add(const std::string& path);

    // The value for LD_PRELOAD, in the order of add(). Asked for once all are added.
    std::string value();

    // The path as it was given to add(), for one that ld.so printed; also inside longer texts.
    std::string original(std::string text) const;

  private:
    std::string linked(const std::string& directory);

    std::vector<std::string> paths_;
    std::string temporary_;
    std::map<std::string, std::string> links_;  // directory -> link
};

}  // namespace cudiag

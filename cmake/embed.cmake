# Turns FILES into one C++ source that defines cudiag::embedded_file(name). Run by -P at build time.
# A file's name is that below knowledge/, explain/ or present/: build-slow.md, zh/build-slow.md.
set(body "")
set(table "")
set(number 0)
foreach(file ${FILES})
  string(REGEX REPLACE ".*/(knowledge|explain|present)/" "" name "${file}")
  file(READ "${file}" hex HEX)
  string(REGEX REPLACE "([0-9a-f][0-9a-f])" "0x\\1," bytes "${hex}")
  string(APPEND body "constexpr unsigned char kFile${number}[] = {${bytes}0};\n")
  string(APPEND table "    {\"${name}\", {reinterpret_cast<const char*>(kFile${number}), sizeof(kFile${number}) - 1}},\n")
  math(EXPR number "${number} + 1")
endforeach()
file(WRITE "${OUTPUT}" "// Made by cmake/embed.cmake from diagnose/knowledge, diagnose/explain and present.
#include \"diagnose/embedded.h\"
#include <utility>
namespace cudiag {
namespace {
${body}const std::pair<std::string_view, std::string_view> kFiles[] = {
${table}};
}  // namespace
std::string_view embedded_file(std::string_view name) {
    for (const auto& [file, bytes] : kFiles) {
        if (file == name) {
            return bytes;
        }
    }
    return {};
}
std::vector<std::string_view> embedded_files() {
    std::vector<std::string_view> names;
    for (const auto& entry : kFiles) {
        names.push_back(entry.first);
    }
    return names;
}
}  // namespace cudiag
")

// What a file needs, or a process has mapped, for a person and as JSON.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "diagnose/elf/fatbin.h"
#include "diagnose/loader/mapped.h"
#include "diagnose/loader/tree.h"
#include "present/terminal.h"

namespace cudiag {

// The tree as lines: name, where it was found and by which rule, its version; what is missing with
// every place searched; other copies that the search passed by; symbol versions that clash.
std::string render_tree(const TreeNode& root, const Style& style);
nlohmann::ordered_json tree_json(const TreeNode& node);

// "device code: sm_80 sm_90 (SASS), compute_90 (PTX)" with a line feed; "" for none. As JSON an
// array, one object an architecture.
std::string render_device_code(const std::vector<DeviceCode>& code);
nlohmann::ordered_json device_code_json(const std::vector<DeviceCode>& code);

std::string render_mapped(const std::vector<MappedLibrary>& libraries, const Style& style);
nlohmann::ordered_json mapped_json(const std::vector<MappedLibrary>& libraries);

// Versions at a glance: for each process its driver and its CUDA libraries, with who needs them.
std::string render_libraries(const std::vector<ProcessLibraries>& processes, const Style& style);
nlohmann::ordered_json libraries_json(const std::vector<ProcessLibraries>& processes);

// A path of at most `room` columns: its beginning and its end, with an ellipsis for what lies
// between.
std::string shortened(const std::string& path, std::size_t room);

}  // namespace cudiag

// CUDA releases as package names spell them.
#pragma once

#include <string>
#include <string_view>

#include "diagnose/knowledge/tables.h"

namespace cudiag {

// 12 for "12.x", "12.4", "12.1-12.9"; 0 for anything else.
int cuda_major_of(std::string_view cuda);

// `provider` with {major}, {minor} and {image} of its patterns filled in for a release like "12.4".
// Unchanged when the release is not written so, or needs an image tag that is not known.
Provider for_cuda_release(const Provider& provider, std::string_view cuda, const ImageTags& images);

}  // namespace cudiag

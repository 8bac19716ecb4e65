#include "diagnose/knowledge/release_name.h"

#include <cctype>
#include <charconv>

namespace cudiag {
namespace {

bool all_digits(std::string_view text) {
    for (const char c : text) {
        if (std::isdigit(static_cast<unsigned char>(c)) == 0) {
            return false;
        }
    }
    return !text.empty();
}

// False when the text has the placeholder and there is nothing to put there.
bool replace(std::string& text, std::string_view placeholder, std::string_view value) {
    const auto at = text.find(placeholder);
    if (at == std::string::npos) {
        return true;
    }
    if (value.empty()) {
        return false;
    }
    text.replace(at, placeholder.size(), value);
    return true;
}

}  // namespace

int cuda_major_of(std::string_view cuda) {
    int major = 0;
    const auto [end, error] = std::from_chars(cuda.data(), cuda.data() + cuda.size(), major);
    return error == std::errc{} && end != cuda.data() + cuda.size() && *end == '.' ? major : 0;
}

Provider for_cuda_release(const Provider& provider, std::string_view cuda,
                          const ImageTags& images) {
    const auto dot = cuda.find('.');
    if (dot == std::string_view::npos) {
        return provider;
    }
    const std::string_view major = cuda.substr(0, dot);
    const std::string_view minor = cuda.substr(dot + 1, cuda.find('.', dot + 1) - dot - 1);
    if (!all_digits(major) || !all_digits(minor)) {
        return provider;
    }
    Provider result = provider;
    if (!provider.pattern.empty()) {
        result.package = provider.pattern;
    }
    if (!provider.spec_pattern.empty()) {
        result.spec = provider.spec_pattern;
    }
    const auto tag = images.find(std::string{major} + "." + std::string{minor});
    const std::string_view image = tag == images.end() ? std::string_view{} : tag->second;
    for (std::string* text : {&result.package, &result.spec}) {
        if (!replace(*text, "{major}", major) || !replace(*text, "{minor}", minor) ||
            !replace(*text, "{image}", image)) {
            return provider;
        }
    }
    return result;
}

}  // namespace cudiag

#include <fmt/core.h>

#include "diagnose/loader/rules.h"
#include "diagnose/say.h"

namespace cudiag {
namespace {

struct TlsUser {
    std::string path;
    std::uint64_t bytes = 0;
    bool static_tls = false;
};

// glibc gives late-comers what is left of a surplus fixed at start (1664 bytes on x86-64 at
// glibc 2.36 with the default tunables: csu/libc-tls.c, elf/dl-tls.c; measured 1,500 fits, 2,000
// does not).
std::uint64_t rounded_up(std::uint64_t bytes) {
    constexpr std::uint64_t kStep = 512;
    return (bytes + kStep) / kStep * kStep;
}

}  // namespace

std::optional<Finding> loader_static_tls(const LoaderCase& c) {
    if (c.error.form != ErrorForm::static_tls) {
        return std::nullopt;
    }
    const std::string& victim = c.error.subject;
    const ElfRead read = read_elf(victim);
    const std::uint64_t asked = read.file ? read.file->tls_bytes : 0;
    std::vector<TlsUser> users;
    std::uint64_t used_late = 0;
    for (const Module& module : c.modules) {
        const ElfRead mapped = read_elf(module.path);
        if (mapped.file && mapped.file->tls_bytes > 0) {
            users.push_back({module.path, mapped.file->tls_bytes, mapped.file->static_tls()});
            // libc's own block was laid out at start-up; it takes nothing from the surplus.
            if (mapped.file->static_tls() && file_name(module.path).rfind("libc.so", 0) != 0) {
                used_late += mapped.file->tls_bytes;
            }
        }
    }
    Finding finding = begin_finding(c, "loader-static-tls",
                                    say("{} needs {} bytes of static TLS, and the surplus "
                                        "that glibc sets aside at start is used up",
                                        victim, asked));
    finding.evidence["library"] = victim;
    finding.evidence["tls_bytes"] = asked;
    finding.evidence["static_tls_flag"] = read.file && read.file->static_tls();
    auto list = nlohmann::ordered_json::array();
    for (const TlsUser& user : users) {
        list.push_back(
            {{"path", user.path}, {"tls_bytes", user.bytes}, {"static_tls_flag", user.static_tls}});
    }
    finding.evidence["users_in_load_order"] = std::move(list);
    finding.evidence["static_tls_by_others"] = used_late;

    // Room for this one and for all that came late before it: the tunable is the whole surplus, not
    // an addition. ld.so's trace maps libraries at start-up, where TLS always fits, so it can prove
    // nothing here.
    const std::uint64_t room = rounded_up(asked + used_late);
    finding.fixes.push_back(
        {say("reserve {} bytes of static TLS at start (glibc 2.32 and newer)", room),
         fmt::format("export GLIBC_TUNABLES=glibc.rtld.optional_static_tls={}", room), false});
    finding.fixes.push_back(
        {say("or have it loaded at start, when there is room"),
         "export LD_PRELOAD=" + shell_quoted(victim) + "${LD_PRELOAD:+:$LD_PRELOAD}", false});
    finding.fixes.push_back(
        {say("or import it before the libraries that use up the surplus (see users_in_load_order)"),
         "", false});
    finding.limits = say(
        "the library named is the one that came last, not the one at fault; the surplus is shared "
        "with what was loaded "
        "before it, and how much of it each got is inferred from the files");
    return finding;
}

}  // namespace cudiag

#include "record/journal.h"

#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "record/keep_errno.h"

namespace cudiag {
namespace {

// A head, and for each field its head, its bytes and what pads them. IOV_MAX is 1024 (limits.h).
constexpr std::size_t kMostParts = 1 + 3 * kJournalFields;
static_assert(kMostParts <= 1024);

constexpr unsigned char kPadding[8] = {};

std::size_t padding_of(std::size_t bytes) {
    return (8 - bytes % 8) % 8;
}

iovec part(const void* bytes, std::size_t size) {
    return {const_cast<void*>(bytes), size};
}

}  // namespace

bool append_to_journal(int file, EntryKind kind, const FieldValue* fields, std::size_t count) {
    const KeepErrno keep;
    iovec parts[kMostParts];
    FieldHead heads[kJournalFields];
    EntryHead head{};
    std::size_t used = 1;
    std::size_t size = sizeof head;
    count = count < kJournalFields ? count : kJournalFields;
    for (std::size_t i = 0; i < count; ++i) {
        const FieldValue& field = fields[i];
        heads[i] = {static_cast<std::uint16_t>(field.field), 0, field.size};
        const std::size_t padding = padding_of(field.size);
        parts[used++] = part(&heads[i], sizeof heads[i]);
        parts[used++] = part(field.bytes == nullptr ? &field.number : field.bytes, field.size);
        parts[used++] = part(kPadding, padding);
        size += sizeof heads[i] + field.size + padding;
    }
    if (size > UINT32_MAX) {
        return false;
    }
    head.bytes = static_cast<std::uint32_t>(size);
    head.commit = kCommitted ^ head.bytes;
    head.kind = static_cast<std::uint16_t>(kind);
    head.tid = static_cast<std::uint32_t>(syscall(SYS_gettid));
    head.realtime_ns = realtime_ns();
    parts[0] = part(&head, sizeof head);
    return writev(file, parts, static_cast<int>(used)) == static_cast<ssize_t>(size);
}

}  // namespace cudiag

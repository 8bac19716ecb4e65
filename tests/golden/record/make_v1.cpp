// Wrote v1.recording, which stays as it is: readers of every later version must read it the same.
// Kept to show what is in it, and to be copied when kFormatVersion rises.
//
//   g++ -std=c++20 -I. tests/golden/record/make_v1.cpp record/writer.cpp -o /tmp/make_v1
//   (cd tests/golden/record && /tmp/make_v1 v1.recording)
#include <fcntl.h>

#include <array>
#include <cstdio>
#include <string>

#include "record/writer.h"

using cudiag::EntryKind;
using cudiag::Field;
using cudiag::FieldValue;

int main(int count, char** arguments) {
    if (count != 2) {
        (void)std::fprintf(stderr, "usage: make_v1 FILE\n");
        return 2;
    }
    cudiag::Writer writer;
    int error = 0;
    const cudiag::Identity identity{4711, 815, 4710, 123456789, 123456700};
    if (writer.open(AT_FDCWD, arguments[1], {2048, 2, 4}, identity, &error) !=
        cudiag::OpenResult::ok) {
        (void)std::fprintf(stderr, "make_v1: cannot write %s: errno %d\n", arguments[1], error);
        return 1;
    }
    const std::array process = {FieldValue::of(Field::path, "/opt/conda/bin/python3.11"),
                                FieldValue::of(Field::argument, "python"),
                                FieldValue::of(Field::argument, "train.py"),
                                FieldValue::of(Field::argument, "--name=\xff\n"),
                                FieldValue::of(Field::working_directory, "/home/user")};
    const std::array variable = {FieldValue::of(Field::name, "LD_LIBRARY_PATH"),
                                 FieldValue::of(Field::value, "")};
    const std::array module = {FieldValue::of(Field::path, "/lib/x86_64-linux-gnu/libc.so.6"),
                               FieldValue::of(Field::base, 0x7ffff7c00000),
                               FieldValue::of(Field::tls_bytes, 0x88),
                               FieldValue::of(Field::snapshot, std::uint64_t{1})};
    const std::array snapshot = {FieldValue::of(Field::snapshot, std::uint64_t{1}),
                                 FieldValue::of(Field::index, std::uint64_t{1})};
    const std::array failed = {FieldValue::of(Field::name, "libcudart.so.11.0"),
                               FieldValue::of(Field::text,
                                              "libcudart.so.11.0: cannot open shared object file: "
                                              "No such file or directory"),
                               FieldValue::of(Field::flags, std::uint64_t{2}),
                               FieldValue::of(Field::caller, "/opt/conda/bin/python3.11"),
                               FieldValue::of(Field::caller_offset, 0x1234),
                               FieldValue::of(Field::snapshot, std::uint64_t{1})};
    // Numbers that are free, as a later writer would use them.
    const FieldValue unknown = FieldValue::of(static_cast<Field>(999), "of a later version");
    bool whole = writer.append(EntryKind::process, process.data(), process.size());
    whole &= writer.append(EntryKind::variable, variable.data(), variable.size());
    whole &= writer.append(EntryKind::module, module.data(), module.size());
    whole &= writer.append(EntryKind::snapshot, snapshot.data(), snapshot.size());
    whole &= writer.append(EntryKind::dlopen_failed, failed.data(), failed.size());
    whole &= writer.append(static_cast<EntryKind>(999), &unknown, 1);
    const std::string too_long(4096, 'x');
    const FieldValue dropped = FieldValue::of(Field::text, too_long.c_str());
    whole &= !writer.append(EntryKind::python_exception, &dropped, 1);
    cudiag::RingHead* ring = writer.claim_ring();
    for (std::uint64_t i = 0; i < 6; ++i) {
        writer.append_hot(ring, 1, static_cast<std::uint16_t>(i), {i, 2 * i, 3 * i, 0, 0, ~i});
    }
    writer.mark_end(cudiag::EndHow::exit, 1);
    return whole ? 0 : 1;
}

// Parts of the shim keep what they know for as long as the process lives: a test of them looks at a
// process of its own.
#pragma once

#include "tests/unit/record/recording_file.h"

namespace cudiag::testing {

// Runs the expectations of `body` in a child of fork, and expects that they hold.
template <class Body>
void in_a_child(Body body) {
    const int status = status_of_child([&] {
        body();
        (void)std::fflush(nullptr);
        return ::testing::Test::HasFailure() ? 1 : 0;
    });
    EXPECT_EQ(status, 0) << "see what the child printed above";
}

}  // namespace cudiag::testing

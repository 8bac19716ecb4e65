// How far each stream of the GPU has come, with CUDIAG_TRACK=1: behind each launch the stream
// itself writes the launch's number into memory of ours (cuStreamWriteValue32). What has not been
// written when the context dies was not finished: the first of a stream is the launch that was
// running. Measured on an H200: docs/gpu-results.md.
#pragma once

#include "shim/cuda/launches.h"

namespace cudiag {

// Gives the launch its number, unless its stream is one that we did not see being made. The first
// one registers the memory with the driver, in the context that is current; where that cannot be, a
// note says why, and there are no marks.
void mark_launch(Launch& launch);

// The launch succeeded: lets its stream write the number. False if the driver refused: there will
// be no more marks.
bool finish_mark(const Launch& launch);

// Copies what the GPU wrote into the recording, where it does not write there itself.
void keep_progress();

// The process ends or becomes another program: the recording holds it all from now on.
void end_progress();

// Streams as they come and go; the default ones are always there.
void note_stream(uint64_t stream, bool made);

void forget_progress();

}  // namespace cudiag

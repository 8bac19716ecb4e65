// What an optimizer is, by what Python told of it.
#pragma once

#include <optional>

#include "diagnose/knowledge/optimizer.h"
#include "diagnose/optimizer/profile.h"
#include "diagnose/optimizer/recorded.h"

namespace cudiag {

// Without Python an empty text: a name of its own, and nothing else.
Optimizer describe_optimizer(const OptimizerText& text);

// What is known of its class, or of the one that it is made from; nullptr if that is nothing.
const OptimizerClass* known_class(const OptimizerText& text);

// Of torch's own, or made from one.
bool is_of_torch(const OptimizerText& text);

// What an update must read and write at least.
Traffic traffic_of(const OptimizerText& text, const Optimizer& optimizer);

// The implementation that its class and flags let expect, where no kernel tells.
Implementation expected_implementation(const Optimizer& optimizer);

}  // namespace cudiag

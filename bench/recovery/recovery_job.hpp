// Recovery job: the shape of the small job whose workers `bench recovery` strikes.
#pragma once

#include "examples/fashion_mnist/mlp.hpp"

namespace troupe::bench {

// Parameters and momentum come to about 1 MiB.
inline constexpr examples::mlp_shape recovery_shape{.inputs = 784, .hidden = 164, .classes = 10};

} // namespace troupe::bench

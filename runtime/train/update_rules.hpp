// Update rules: what an optimizer does to one element. One text for the CPU's loops (optimizer.cpp) and the
// GPU's kernels (transports/nccl/kernels.cu), so that both compute the same.
//
// Basic IEEE operations only, in the order written. Both compilers are told not to fuse a multiplication and
// an addition; then the bits are the same.
#pragma once

#include <cmath>

#ifdef __CUDACC__
#define TROUPE_CPU_AND_GPU __host__ __device__
#else
#define TROUPE_CPU_AND_GPU
#endif

namespace troupe {

struct sgd_rule {
  float scale;
  float rate;
  float momentum;
  float decay;

  TROUPE_CPU_AND_GPU void plain(float& parameter, float gradient) const {
    parameter -= rate * (gradient * scale + decay * parameter);
  }
  template <bool Nesterov>
  TROUPE_CPU_AND_GPU void with_momentum(float& parameter, float& velocity, float gradient) const {
    const float step = gradient * scale + decay * parameter;
    velocity = momentum * velocity + step;
    parameter -= rate * (Nesterov ? step + momentum * velocity : velocity);
  }
};

struct adamw_rule {
  float scale;
  float beta1;
  float beta2;
  float epsilon;
  float keep;  // 1 - rate * weight decay
  float rate;  // divided by the first correction
  float root2; // 1 / root of the second correction

  TROUPE_CPU_AND_GPU void apply(float& parameter, float& mean, float& variance, float gradient) const {
    const float rest1 = 1.0F - beta1;
    const float rest2 = 1.0F - beta2;
    const float scaled = gradient * scale;
    mean = beta1 * mean + rest1 * scaled;
    variance = beta2 * variance + rest2 * (scaled * scaled);
    parameter = keep * parameter - rate * mean / (sqrtf(variance) * root2 + epsilon);
  }
};

} // namespace troupe

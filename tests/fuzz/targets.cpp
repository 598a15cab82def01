#include "tests/fuzz/targets.hpp"

#include <array>

namespace troupe::fuzz {

std::span<const target* const> all_targets() {
  static constexpr std::array all{&addresses_target,    &codec_target,
                                  &control_target,      &entry_list_target,
                                  &envelope_target,     &events_target,
                                  &faults_target,       &flight_target,
                                  &idx_target,          &journal_target,
                                  &level_frames_target, &manifest_target,
                                  &rendezvous_target,   &rendezvous_stream_target,
                                  &ring_frames_target,  &safetensors_target,
                                  &segment_target,      &settings_target,
                                  &ucx_frames_target};
  return all;
}

} // namespace troupe::fuzz

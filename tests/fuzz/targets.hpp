// The fuzz targets, one a file of targets/.
#pragma once

#include <span>

#include "tests/fuzz/fuzz_target.hpp"

namespace troupe::fuzz {

extern const target envelope_target;
extern const target codec_target;
extern const target control_target;
extern const target ucx_frames_target;
extern const target rendezvous_target;
extern const target rendezvous_stream_target;
extern const target addresses_target;
extern const target faults_target;
extern const target settings_target;
extern const target flight_target;
extern const target manifest_target;
extern const target safetensors_target;
extern const target idx_target;
extern const target journal_target;
extern const target events_target;
extern const target segment_target;
extern const target ring_frames_target;
extern const target level_frames_target;
extern const target entry_list_target;

// In alphabetical order.
[[nodiscard]] std::span<const target* const> all_targets();

} // namespace troupe::fuzz

// Staged dataset: unsigned-byte samples and labels, decoded once and shared by all processes of a host.
//
// Flow:     reader of some format -> stage_pixels -> [staged memory] -> open_staged in other processes
// Owns:     a share of the staged memory: one header, the labels, the pixels.
// Runs on:  any thread. `read_into` neither allocates nor blocks.
// Fails:    `errc::corrupt` for memory whose header is not ours or does not fit its size.
// Invariants:
//   SD-1    a dataset opened elsewhere has the digest, and so the samples, of the one that was staged.
//   ST-2    opening neither decodes nor copies (the digest is read from the header, not computed again).
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <string>

#include "runtime/data/dataset.hpp"
#include "runtime/data/pixel_scaling.hpp"
#include "runtime/data/staging.hpp"

namespace troupe {

struct pixel_description {
  std::string name; // at most limits::name_bytes_max bytes
  std::uint64_t samples{0};
  std::uint32_t features{0};
  std::uint32_t classes{0};
  pixel_scaling scaling;
};

class staged_dataset final : public dataset {
public:
  // For stage_pixels and open_staged: the header has been checked.
  staged_dataset(std::shared_ptr<const staged_memory> memory, const pixel_table& table);

  [[nodiscard]] std::string name() const override;
  [[nodiscard]] std::uint64_t samples() const override { return samples_; }
  [[nodiscard]] std::uint32_t features() const override { return features_; }
  [[nodiscard]] std::uint32_t classes() const override;
  [[nodiscard]] std::string digest() const override;
  [[nodiscard]] expected<void> read_into(std::uint64_t index, std::span<float> inputs) const override;
  [[nodiscard]] std::uint8_t label(std::uint64_t index) const override;
  void expect(std::uint64_t index) const override;

  [[nodiscard]] const staged_memory& memory() const { return *memory_; }

private:
  [[nodiscard]] std::span<const std::uint8_t> pixels_of(std::uint64_t index) const;

  std::shared_ptr<const staged_memory> memory_;
  std::uint64_t samples_;
  std::uint32_t features_;
  const std::uint8_t* pixels_;
  const std::uint8_t* labels_;
  pixel_table table_;
};

// Writes `pixels` [samples, features] and `labels` [samples]; both are zeroed on entry.
using pixel_source =
    std::function<expected<void>(std::span<std::uint8_t> pixels, std::span<std::uint8_t> labels)>;

// Lets `source` decode into memory of `into`, checks the labels, seals. errc: bad_argument for an impossible
// description, bad_data for a label out of range, and what `source` and `into` report.
[[nodiscard]] expected<std::shared_ptr<const staged_dataset>>
stage_pixels(staging& into, const pixel_description& what, const pixel_source& source);

// Maps what another process staged.
[[nodiscard]] expected<std::shared_ptr<const staged_dataset>> open_staged(staging& from,
                                                                          const std::string& locator);

// errc::bad_data names `source`, the position and the value of the first label outside [0, classes).
[[nodiscard]] expected<void> check_labels(std::span<const std::uint8_t> labels, std::uint32_t classes,
                                          const std::string& source);

} // namespace troupe

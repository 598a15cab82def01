// IDX datasets: images and labels as two files of unsigned bytes, plain or gzip (MNIST, Fashion-MNIST).
//
// Flow:     two files -> storage seam -> [checked, decoded] -> staged dataset
// Runs on:  the storage thread, or a start before the event loop: it blocks (0.4 s for 60,000 images).
// Fails:    `errc::bad_data`, one line: the file, the value and what is accepted; nothing is staged.
// Format:   big-endian: magic (two zero bytes, type 0x08, number of dimensions), one 32-bit size a dimension,
//           then the bytes, last dimension fastest.
#pragma once

#include <memory>
#include <string>

#include "runtime/base/error.hpp"
#include "runtime/data/pixel_scaling.hpp"
#include "runtime/data/staged_dataset.hpp"
#include "runtime/data/staging.hpp"
#include "runtime/seams/storage.hpp"

namespace troupe {

struct idx_files {
  std::string name;
  std::string images; // path
  std::string labels; // path
  std::uint32_t classes{10};
  pixel_scaling scaling;
};

[[nodiscard]] expected<std::shared_ptr<const staged_dataset>> stage_idx(storage& files, staging& into,
                                                                        const idx_files& what);

} // namespace troupe

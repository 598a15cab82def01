// The entry that libFuzzer calls; one program a target, which TROUPE_FUZZ_TARGET names.
#include <cstdint>

#include "tests/fuzz/targets.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  troupe::fuzz::TROUPE_FUZZ_TARGET.run(std::as_bytes(std::span{data, size}));
  return 0;
}

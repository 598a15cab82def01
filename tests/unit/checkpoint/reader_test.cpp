#include <catch2/catch_test_macros.hpp>

#include "runtime/base/digest.hpp"
#include "runtime/checkpoint/bit_flip.hpp"
#include "runtime/checkpoint/checkpoint_reader.hpp"
#include "runtime/checkpoint/shard_file.hpp"
#include "runtime/checkpoint/version_name.hpp"
#include "tests/unit/checkpoint/fixture.hpp"

namespace troupe {
namespace {

using test::checkpoint_directory;

struct one_version {
  test::memory_storage files;
  verified_version version;
  state_layout layout{test::small_layout()};
  std::vector<float> arena = std::vector<float>(96, -1.0F);

  one_version() {
    (void)files.create_directories(checkpoint_directory);
    REQUIRE(test::write_version(files, 200, 4.0F));
    version = catalog{files, checkpoint_directory}.version_at(step_id{200}, layout).value();
  }
  expected<checkpoint_metadata> load() {
    return load_version(files, version, layout, std::as_writable_bytes(std::span{arena}));
  }
  // Writes other tensors into the parameters' file and makes the manifest agree with it.
  void replace_parameters(std::vector<shard_tensor> tensors) {
    auto bytes = encode_shard_header(tensors, {});
    for (const auto& tensor : tensors)
      bytes.resize(bytes.size() + tensor_spec{"", tensor.shape, 0}.elements() * sizeof(float));
    auto& file = version.manifest.files[0];
    file.bytes = bytes.size();
    file.digest = digest_of(bytes);
    const std::span<const std::byte> piece{bytes};
    REQUIRE(files.write_file(join_path(version.path, file.name), std::span{&piece, 1}));
  }
};

TEST_CASE("reader: a load gives back the state to the bit, with zero padding (CK-7)") {
  one_version v;
  const auto metadata = v.load();
  REQUIRE(metadata);
  CHECK(v.arena == test::small_state(4.0F));
  CHECK(metadata->sample_cursor == 25600);
  CHECK(metadata->weights_digest ==
        weights_digest_of(v.layout, std::as_bytes(std::span<const float>{v.arena})));
}

TEST_CASE("reader: another padding of the same tensors reads the same files") {
  one_version v;
  v.layout.tensors[1].offset_elements = 20;
  v.layout.parameter_elements = 40;
  REQUIRE(v.load());
  CHECK(v.arena[20] == test::small_state(4.0F)[16]);
  CHECK(v.arena[40] == test::small_state(4.0F)[48]);
  CHECK(v.arena[80] == -1.0F); // beyond the state: untouched
}

TEST_CASE("reader: damage after verification is found while reading (CK-7)") {
  one_version v;
  REQUIRE(flip_bit(v.files, checkpoint_directory, "newest"));
  CHECK(v.load().failure().code == errc::corrupt);
}

TEST_CASE("reader: tensors that are not those of the layout are refused, named (CK-7)") {
  const auto fails = [](std::vector<shard_tensor> tensors) {
    one_version v;
    v.replace_parameters(std::move(tensors));
    const auto loaded = v.load();
    REQUIRE_FALSE(loaded);
    CHECK(loaded.failure().code == errc::corrupt);
    return loaded.failure().text;
  };
  const shard_tensor weight{"fc1.weight", {3, 5}, 0, 0};
  const shard_tensor bias{"fc1.bias", {5}, 0, 0};
  CHECK(fails({weight, bias}).find("'scale' of 'parameters' is in none") != std::string::npos);
  CHECK(fails({weight, bias, {"scales", {}, 0, 0}}).find("unknown tensor 'scales'") != std::string::npos);
  CHECK(fails({{"fc1.weight", {5, 3}, 0, 0}}).find("another shape") != std::string::npos);
  CHECK(fails({weight, bias, {"scale", {}, 0, 0}}).find("digest in the manifest") != std::string::npos);
}

TEST_CASE("reader: another program, an unknown segment and a short arena are refused") {
  one_version v;
  CHECK(load_version(v.files, v.version, v.layout, std::as_writable_bytes(std::span{v.arena}.first(90)))
            .failure()
            .code == errc::bad_argument);
  v.version.manifest.files[1].segment = "velocity";
  CHECK(v.load().failure().code == errc::corrupt);
  v.layout.program = "other";
  CHECK(v.load().failure().code == errc::wrong_program);
}

TEST_CASE("reader: a failing read at any call is an error, never a partial success (CK-7)") {
  one_version probe;
  probe.files.restart_count();
  REQUIRE(probe.load());
  const auto calls = probe.files.calls();
  for (std::size_t at = 0; at < calls; ++at) {
    one_version v;
    v.files.restart_count();
    v.files.fail_at(at, errc::storage_failed);
    CHECK(v.load().failure().code == errc::storage_failed);
  }
}

TEST_CASE("reader: the index says where each tensor lies") {
  one_version v;
  const auto index = index_version(v.files, v.version.path, v.version.manifest);
  REQUIRE(index);
  REQUIRE(index->size() == 6);
  const auto& bias = (*index)[1];
  CHECK(bias.name == "fc1.bias");
  CHECK(bias.segment == "parameters");
  float first = 0;
  REQUIRE(v.files.read_at(bias.path, bias.offset, std::as_writable_bytes(std::span{&first, 1})));
  CHECK(first == test::small_state(4.0F)[16]);
}

} // namespace
} // namespace troupe

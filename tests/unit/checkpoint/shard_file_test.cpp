#include <array>
#include <string>

#include <catch2/catch_test_macros.hpp>

#include "runtime/checkpoint/shard_file.hpp"
#include "tests/unit/checkpoint/fixture.hpp"

namespace troupe {
namespace {

std::vector<std::byte> file_of(const std::string& header, std::size_t data_bytes,
                               std::optional<std::uint64_t> length = std::nullopt) {
  const std::uint64_t said = length.value_or(header.size());
  std::vector<std::byte> bytes(8 + header.size() + data_bytes);
  std::memcpy(bytes.data(), &said, 8);
  std::memcpy(bytes.data() + 8, header.data(), header.size());
  return bytes;
}

expected<shard_header> parse(const std::string& header, std::size_t data_bytes,
                             std::optional<std::uint64_t> length = std::nullopt) {
  const auto bytes = file_of(header, data_bytes, length);
  return parse_shard_header(bytes, bytes.size(), "a.safetensors");
}

TEST_CASE("shard file: what is encoded is read back, and the data starts at a multiple of 64") {
  const std::array<shard_tensor, 3> tensors{
      {{"z", {2, 3}, 0, 0}, {"a \"quoted\" \xc3\xa9", {}, 0, 0}, {"m", {7}, 0, 0}}};
  const auto header = encode_shard_header(tensors, {{"program", "toy"}});
  CHECK(header.size() % 64 == 0);
  const auto read = parse_shard_header(header, header.size() + 14 * 4, "f");
  REQUIRE(read);
  CHECK(read->data_offset == header.size());
  REQUIRE(read->tensors.size() == 3);
  CHECK(read->tensors[0].name == "z");
  CHECK(read->tensors[1].name == tensors[1].name);
  CHECK(read->tensors[1].shape.empty());
  CHECK(read->tensors[2].begin == 28);
  CHECK(read->tensors[2].end == 56);
  CHECK(read->metadata.at("program") == "toy");
}

TEST_CASE("shard file: a file as another tool writes it is read") {
  const auto read = parse(R"({"w":{"dtype":"F32","shape":[2,2],"data_offsets":[4,20]},)"
                          R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
                          20);
  REQUIRE(read);
  CHECK(read->tensors[0].name == "b");
  CHECK(read->tensors[1].name == "w");
}

TEST_CASE("shard file: whatever is not exactly such a file is corrupt, and the text says why (CK-6)") {
  struct bad_case {
    const char* header;
    std::size_t data_bytes;
    const char* says;
  };
  const auto cases = std::to_array<bad_case>({
      {"", 0, "does not start"},
      {"[]", 0, "does not start"},
      {"{", 0, "not valid JSON"},
      {"{} x", 0, "not valid JSON"},
      {"{}", 4, "belong to no tensor"},
      {R"({"w":3})", 4, "not an object"},
      {R"({"w":{"shape":[1],"data_offsets":[0,4]}})", 4, "lacks 'dtype'"},
      {R"({"w":{"dtype":"F16","shape":[1],"data_offsets":[0,4]}})", 4, "F16"},
      {R"({"w":{"dtype":"F32","shape":1,"data_offsets":[0,4]}})", 4, "'shape'"},
      {R"({"w":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "whole number"},
      {R"({"w":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "whole number"},
      {R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "shape does not give"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "not two numbers"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4,8]}})", 4, "data_offsets"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "outside the data"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 4, "outside the data"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "hole"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8, "belong to no tensor"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4],"x":1}})", 4, "unknown fields"},
      {R"({"":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4, "name"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},"w":{}})", 4, "twice"},
      {R"({"__metadata__":{"a":1}})", 0, "not a text"},
      {R"({"__metadata__":[]})", 0, "not an object"},
      {R"({"w":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4, "outside the data"},
      {R"({"w":{"dtype":"F32","shape":[4294967296,4294967296],"data_offsets":[0,0]}})", 0, "shape does not"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},"b":{"dtype":"F32","shape":[2],)"
       R"("data_offsets":[4,12]}})",
       12, "overlaps"},
      {R"({"a":[[[[[[[[[[[[[[[[[[[[]]]]]]]]]]]]]]]]]]]]})", 0, "nested too deeply"},
  });
  for (const auto& [header, data_bytes, says] : cases) {
    INFO(header);
    const auto read = parse(header, data_bytes);
    REQUIRE_FALSE(read);
    CHECK(read.failure().code == errc::corrupt);
    INFO(read.failure().text);
    CHECK(read.failure().text.find(says) != std::string::npos);
    CHECK(read.failure().text.find("a.safetensors") != std::string::npos);
  }
}

TEST_CASE("shard file: a header length that lies is found before anything is allocated (CK-6)") {
  for (const std::uint64_t length :
       {std::uint64_t{3}, std::uint64_t{1000}, std::uint64_t{1} << 40, UINT64_MAX}) {
    const auto read = parse("{}", 0, length);
    REQUIRE_FALSE(read);
    CHECK(read.failure().code == errc::corrupt);
  }
  test::memory_storage files;
  (void)files.create_directories("/d");
  test::put_text(files, "/d/short", "abc");
  test::put_text(files, "/d/lies", std::string(8, '\xff') + "{}");
  CHECK(read_shard_header(files, "/d/short").failure().code == errc::corrupt);
  CHECK(read_shard_header(files, "/d/lies").failure().code == errc::corrupt);
  CHECK(read_shard_header(files, "/d/none").failure().code == errc::not_found);
}

TEST_CASE("shard file: no single damaged byte of a header leads out of the file (CK-6)") {
  const std::array<shard_tensor, 2> tensors{{{"a", {2, 3}, 0, 0}, {"b", {4}, 0, 0}}};
  const auto good = encode_shard_header(tensors, {{"k", "v"}});
  const auto file_bytes = good.size() + 40;
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (unsigned value = 0; value < 256; ++value) {
      auto bad = good;
      bad[at] = static_cast<std::byte>(value);
      const auto read = parse_shard_header(bad, file_bytes, "f");
      if (!read) continue;
      std::uint64_t covered = 0;
      for (const auto& tensor : read->tensors)
        covered += tensor.end - tensor.begin;
      REQUIRE(read->data_offset + covered == file_bytes);
    }
  }
}

} // namespace
} // namespace troupe

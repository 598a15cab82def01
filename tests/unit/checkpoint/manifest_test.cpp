#include <catch2/catch_test_macros.hpp>
#include <nlohmann/json.hpp>

#include "runtime/base/digest.hpp"
#include "runtime/checkpoint/manifest.hpp"
#include "runtime/checkpoint/version_name.hpp"
#include "tests/unit/checkpoint/fixture.hpp"

namespace troupe {
namespace {

using json = nlohmann::json;

manifest sample() {
  return {manifest_schema,
          "toy",
          test::small_layout().fingerprint(),
          test::metadata_at(200),
          {{"parameters-00001-of-00001.safetensors", "parameters", 320, std::string(32, 'a')},
           {"optimizer-momentum-00001-of-00001.safetensors", "momentum", 320, std::string(32, 'b')}}};
}

expected<manifest> parse(const std::string& text) {
  return parse_manifest(std::as_bytes(std::span{text}), "manifest.json");
}

// The manifest after a change, with its own digest made right again.
std::string resealed(const std::function<void(json&)>& change) {
  auto value = json::parse(encode_manifest(sample()));
  change(value);
  value.erase("manifest_digest");
  const auto canonical = value.dump();
  value["manifest_digest"] = digest_of(std::as_bytes(std::span{canonical}));
  return value.dump();
}

TEST_CASE("manifest: what is written is read back, 64-bit numbers included") {
  const auto read = parse(encode_manifest(sample()));
  REQUIRE(read);
  CHECK(read->program == "toy");
  CHECK(read->metadata.job == job_id{0xabcdef, 0x123456789});
  CHECK(read->metadata.step == step_id{200});
  CHECK(read->metadata.generation == generation_id{2});
  CHECK(read->metadata.sample_cursor == 25600);
  CHECK(read->metadata.seed == 0xffffffffffffffffULL);
  CHECK(read->metadata.shards == 8);
  CHECK(read->metadata.global_batch == 128);
  CHECK(read->metadata.world == 3);
  CHECK(read->metadata.optimizer == "sgd momentum=0.9");
  CHECK(read->metadata.schedule == "cosine peak=0.05 warmup=100");
  CHECK(read->metadata.wire == "bfloat16");
  CHECK(read->metadata.top_k == "0");
  CHECK(read->metadata.state_digest == "00112233445566778899aabbccddeeff");
  REQUIRE(read->files.size() == 2);
  CHECK(read->files[1].segment == "momentum");
  CHECK(read->bytes() == 640);
  CHECK(encode_manifest(*read) == encode_manifest(sample()));
}

TEST_CASE("manifest: one of an older build says nothing of wire and top-k") {
  const auto read = parse(resealed([](json& value) {
    value.erase("wire");
    value.erase("top_k");
  }));
  REQUIRE(read);
  CHECK(read->metadata.wire.empty());
  CHECK(read->metadata.top_k.empty());
  const auto again = json::parse(encode_manifest(*read));
  CHECK_FALSE(again.contains("wire"));
  CHECK_FALSE(again.contains("top_k"));
}

TEST_CASE("manifest: a newer schema is refused as such, whatever else it holds") {
  const auto read = parse(resealed([](json& value) {
    value["schema"] = 2;
    value.erase("files");
    value["tiers"] = {{"x", 1.5}};
  }));
  REQUIRE_FALSE(read);
  CHECK(read.failure().code == errc::wrong_version);
  CHECK(read.failure().text.find("schema 2") != std::string::npos);
}

TEST_CASE("manifest: a damaged schema number is damage, not a newer schema") {
  auto text = encode_manifest(sample());
  const auto at = text.find("\"schema\": 1");
  REQUIRE(at != std::string::npos);
  text[at + 10] = '3';
  CHECK(parse(text).failure().code == errc::corrupt);
}

TEST_CASE("manifest: another program or layout is refused, and both are named") {
  auto other = test::small_layout();
  other.program = "tray";
  const auto by_name = check_belongs(sample(), other, "v");
  REQUIRE_FALSE(by_name);
  CHECK(by_name.failure().code == errc::wrong_program);
  CHECK(by_name.failure().text.find("'toy'") != std::string::npos);
  CHECK(by_name.failure().text.find("'tray'") != std::string::npos);

  auto wider = test::small_layout();
  wider.tensors[0].shape = {5, 3};
  const auto by_layout = check_belongs(sample(), wider, "v");
  REQUIRE_FALSE(by_layout);
  CHECK(by_layout.failure().text.find(wider.fingerprint()) != std::string::npos);
  CHECK(by_layout.failure().text.find(sample().layout) != std::string::npos);
  CHECK(check_belongs(sample(), test::small_layout(), "v"));
}

TEST_CASE("manifest: malformed ones are corrupt (CK-6)") {
  const auto cases = std::vector<std::string>{
      "",
      "null",
      "{}",
      "[1]",
      encode_manifest(sample()).substr(0, 300),
      resealed([](json& v) { v["schema"] = 0; }),
      resealed([](json& v) { v["schema"] = "1"; }),
      resealed([](json& v) { v["step"] = -1; }),
      resealed([](json& v) { v["step"] = 1.5; }),
      resealed([](json& v) { v["world"] = 5000000000; }),
      resealed([](json& v) { v["job"] = "xyz"; }),
      resealed([](json& v) { v["optimizer"] = std::string(5000, 'x'); }),
      resealed([](json& v) { v.erase("seed"); }),
      resealed([](json& v) { v["wire"] = 16; }),
      resealed([](json& v) { v["top_k"] = std::string(5000, '0'); }),
      resealed([](json& v) { v["files"] = json::array(); }),
      resealed([](json& v) { v["files"] = 3; }),
      resealed([](json& v) { v["files"][0] = 3; }),
      resealed([](json& v) { v["files"][0]["name"] = "../../etc/passwd"; }),
      resealed([](json& v) { v["files"][0]["name"] = "manifest.json"; }),
      resealed([](json& v) { v["files"][0]["name"] = v["files"][1]["name"]; }),
      resealed([](json& v) { v["files"][0]["digest"] = "aa"; }),
      resealed([](json& v) { v["files"][0].erase("bytes"); }),
  };
  for (const auto& text : cases) {
    INFO(text);
    const auto read = parse(text);
    REQUIRE_FALSE(read);
    CHECK(read.failure().code == errc::corrupt);
  }
}

TEST_CASE("manifest: no single damaged byte changes what it says (CK-4)") {
  const auto good = encode_manifest(sample());
  for (std::size_t at = 0; at < good.size(); ++at) {
    for (const unsigned flip : {0x01U, 0x04U, 0x20U, 0x80U}) {
      auto bad = good;
      bad[at] = static_cast<char>(static_cast<unsigned char>(bad[at]) ^ flip);
      const auto read = parse(bad);
      if (read) CHECK(encode_manifest(*read) == good); // only white space is not covered
      if (!read) CHECK(read.failure().code == errc::corrupt);
    }
  }
}

TEST_CASE("version names: only names that this room writes are understood") {
  CHECK(whole_name(step_id{200}) == "step-000000000200");
  CHECK(parse_version_name("step-000000000200")->step == step_id{200});
  CHECK(parse_version_name(whole_name(step_id{UINT64_MAX}))->step == step_id{UINT64_MAX});
  const auto partial = marked_name(version_state::partial, step_id{7}, test::test_incarnation);
  CHECK(partial == ".partial-step-000000000007-00000000000000110000000000000022");
  CHECK(parse_version_name(partial)->state == version_state::partial);
  for (const auto* name :
       {"", "step-", "step-200", "step-0000000000200", "step-00000000020x", "step--00000000200",
        "step-000000000200.bak", ".partial-step-000000000007", "partial", "."})
    CHECK_FALSE(parse_version_name(name));
}

TEST_CASE("layout: bad ones are refused before anything is written") {
  const auto good = test::small_layout();
  CHECK(validate(good));
  const auto broken = [&](const std::function<void(state_layout&)>& change) {
    auto layout = good;
    change(layout);
    return validate(layout);
  };
  CHECK_FALSE(broken([](auto& l) { l.program.clear(); }));
  CHECK_FALSE(broken([](auto& l) { l.tensors.clear(); }));
  CHECK_FALSE(broken([](auto& l) { l.tensors[1].name = "fc1.weight"; }));
  CHECK_FALSE(broken([](auto& l) { l.tensors[1].name = "__metadata__"; }));
  CHECK_FALSE(broken([](auto& l) { l.tensors[1].name = "\xff"; }));
  CHECK_FALSE(broken([](auto& l) { l.tensors[1].offset_elements = 14; }));
  CHECK_FALSE(broken([](auto& l) { l.tensors[1].offset_elements = 44; }));
  CHECK_FALSE(broken([](auto& l) { l.tensors[1].offset_elements = UINT64_MAX; }));
  CHECK_FALSE(broken([](auto& l) { l.tensors[1].shape = {0}; }));
  CHECK_FALSE(broken([](auto& l) { l.slots = {"momentum", "momentum"}; }));
  CHECK_FALSE(broken([](auto& l) { l.slots = {"../x"}; }));
  CHECK_FALSE(broken([](auto& l) { l.slots = {"parameters"}; }));
}

TEST_CASE("layout: the fingerprint follows names, shapes, order and slots, not padding") {
  const auto base = test::small_layout();
  auto padded = base;
  padded.tensors[2].offset_elements = 40;
  CHECK(padded.fingerprint() == base.fingerprint());
  auto swapped = base;
  std::swap(swapped.tensors[0], swapped.tensors[1]);
  CHECK(swapped.fingerprint() != base.fingerprint());
  auto no_slot = base;
  no_slot.slots.clear();
  CHECK(no_slot.fingerprint() != base.fingerprint());
  auto renamed = base;
  renamed.tensors[0].name = "fc1.weigh";
  renamed.tensors[1].name = "tfc1.bias";
  CHECK(renamed.fingerprint() != base.fingerprint());
}

} // namespace
} // namespace troupe

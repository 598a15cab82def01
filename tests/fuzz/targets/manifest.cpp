// Manifest of a checkpoint. Its digest stops blind mutations early, so the digest of the changed text is put
// into every second input.
#include "runtime/checkpoint/manifest.hpp"

#include "runtime/base/digest.hpp"
#include "tests/fuzz/targets.hpp"

#include <nlohmann/json.hpp>

namespace troupe::fuzz {
namespace {

// The rule of manifest.hpp: over the compact form with sorted keys, without the digest.
std::string with_its_digest(const std::string& text) {
  auto json = nlohmann::json::parse(text, nullptr, false);
  if (!json.is_object()) return text;
  json.erase("manifest_digest");
  const auto body = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  json["manifest_digest"] = digest_of(std::as_bytes(std::span{body}));
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void run(input given) {
  const auto choice = take_choice(given, 2);
  const auto text = choice == 0 ? text_of(given) : with_its_digest(text_of(given));
  const auto read = parse_manifest(std::as_bytes(std::span{text}), "manifest.json");
  if (!read) {
    require(read.failure().code == errc::corrupt || read.failure().code == errc::wrong_version,
            "CK-6: damage is corrupt, or of a newer schema");
    return;
  }
  (void)read->bytes();
  const auto again = encode_manifest(*read);
  const auto back = parse_manifest(std::as_bytes(std::span{again}), "manifest.json");
  require(back && back->files.size() == read->files.size() && back->metadata.step == read->metadata.step,
          "a manifest that was read is written and read alike");
  require(back->metadata.wire == read->metadata.wire && back->metadata.top_k == read->metadata.top_k,
          "and says the same of what its sums were");
}

std::vector<bytes> seeds() {
  manifest version;
  version.program = "fashion_mnist";
  version.layout = std::string(32, 'a');
  version.metadata.job = {1, 2};
  version.metadata.step = step_id{200};
  version.metadata.shards = 8;
  version.metadata.global_batch = 128;
  version.metadata.world = 2;
  version.metadata.optimizer = "sgd momentum 0.9";
  version.metadata.schedule = "cosine";
  version.metadata.weights_digest = std::string(32, 'b');
  version.files = {{"parameters-0.safetensors", "parameters", 4096, std::string(32, 'c')},
                   {"momentum-0.safetensors", "momentum", 4096, std::string(32, 'd')}};
  const auto older = encode_manifest(version); // of a build that did not say the next two
  version.metadata.wire = "bfloat16";
  version.metadata.top_k = "0.05";
  const auto text = encode_manifest(version);
  return {chosen(0, bytes_of(text)), chosen(1, bytes_of(text)), chosen(1, bytes_of(older))};
}

} // namespace

const target manifest_target{"manifest", run, seeds, 4000};

} // namespace troupe::fuzz

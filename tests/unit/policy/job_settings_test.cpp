#include "runtime/policy/job_settings.hpp"

#include <functional>
#include <limits>

#include <catch2/catch_test_macros.hpp>

namespace troupe {
namespace {

using namespace std::chrono_literals;

std::string refusal(const std::function<void(job_settings&)>& change) {
  job_settings s;
  change(s);
  const auto valid = s.validate();
  if (valid) return "accepted";
  CHECK(valid.failure().code == errc::bad_argument);
  CHECK(valid.failure().text.find('\n') == std::string::npos);
  return valid.failure().text;
}

TEST_CASE("job settings: the contract's defaults are valid") {
  const job_settings s;
  CHECK(s.validate());
  CHECK(s.workers == 2);
  CHECK(s.shards == 8);
  CHECK(s.seed == 1);
  CHECK(s.checkpoint_every == 100);
  CHECK(s.keep == 3);
  CHECK(s.detect_after == 1s);
  CHECK(s.listen == "127.0.0.1:0");
  CHECK(to_text(s.resume) == "auto");
}

TEST_CASE("job settings: numbers out of range are named with what is accepted") {
  CHECK(refusal([](auto& s) { s.workers = 0; }) == "--workers 0: too small; accepted: 1 to 1024");
  CHECK(refusal([](auto& s) { s.workers = 9; }) ==
        "--workers 9: more than the 8 of --shards, so some would have no work; accepted: 1 to 8");
  CHECK(refusal([](auto& s) { s.workers_min = 3; }) ==
        "--workers-min 3: more than --workers 2; accepted: 1 to 2");
  CHECK(refusal([](auto& s) { s.workers_min = 0; }).starts_with("--workers-min 0: too small"));
  CHECK(refusal([](auto& s) { s.workers_max = 1; }) ==
        "--workers-max 1: less than --workers 2; accepted: 2 to 8");
  CHECK(refusal([](auto& s) { s.workers_max = 9; }).starts_with("--workers-max 9: more than --shards 8"));
  CHECK(refusal([](auto& s) { s.shards = 0; }).starts_with("--shards 0: too small"));
  CHECK(refusal([](auto& s) { s.steps = 0; }).starts_with("--steps 0: too small"));
  CHECK(refusal([](auto& s) { s.epochs = 0; }).starts_with("--epochs 0: too small"));
  CHECK(refusal([](auto& s) { s.keep = 0; }).starts_with("--keep 0: too small"));
  CHECK(refusal([](auto& s) { s.checkpoint_every = 0; }) ==
        "--checkpoint-every 0: too small; accepted: at least 1");
  CHECK(refusal([](auto& s) { s.detect_after = 1ms; }) ==
        "--detect-after 1ms: out of range; accepted: 50ms to 10min");
  CHECK(refusal([](auto& s) { s.spin = 2s; }) == "--spin 2s: out of range; accepted: 0ms to 1s");
}

TEST_CASE("job settings: with a GPU, what is not summed there is refused with both ways out") {
  CHECK(refusal([](auto& s) { s.device = "cuda:1"; }) == "accepted");
  CHECK(refusal([](auto& s) { s.device = "cuda:0", s.wire = "float16"; }) ==
        "--device cuda:0: --wire float16 is not summed on GPUs; accepted: --wire float32, or --device cpu");
  CHECK(refusal([](auto& s) {
          s.device = "cuda:0", s.top_k = 0.1;
        }).starts_with("--device cuda:0: --top-k 0.1 is not"));
  CHECK(refusal([](auto& s) {
          s.device = "cuda:0", s.collective = "shm";
        }).ends_with("accepted: --collective auto, or --device cpu"));
  for (const auto* wrong : {"cuda", "cuda:", "cuda:-1", "cuda:1x", "cuda:64", "gpu:0"})
    CHECK(refusal([&](auto& s) { s.device = wrong; }) ==
          "--device " + std::string{wrong} + ": no such device; accepted: auto, cpu, cuda:N");
  CHECK(gpu_of("cuda:63") == 63);
  CHECK(!gpu_of("cpu"));
}

TEST_CASE("job settings: a global batch that does not divide says which do") {
  CHECK(refusal([](auto& s) { s.global_batch = 130; }) ==
        "--global-batch 130: not divisible into 8 shards; nearest: 128 or 136; accepted: multiples of 8");
  CHECK(refusal([](auto& s) { s.global_batch = 3; }) ==
        "--global-batch 3: not divisible into 8 shards; nearest: 8; accepted: multiples of 8");
  CHECK(refusal([](auto& s) { s.accumulate = 3; }) == "accepted"); // steps of three global batches
  CHECK(refusal([](auto& s) { s.global_batch = 0; }).starts_with("--global-batch 0: too small"));
}

TEST_CASE("job settings: impossible combinations are refused") {
  CHECK(refusal([](auto& s) { s.steps = 5, s.epochs = 2; }) ==
        "--epochs 2: --steps 5 is given too; accepted: one of the two");
  CHECK(refusal([](auto& s) {
          s.resume = *parse_resume("200");
        }).starts_with("--resume 200: there is nothing"));
  CHECK(refusal([](auto& s) { s.events = s.summary = "out.json"; }).starts_with("--summary out.json"));
  CHECK(refusal([](auto& s) { s.join = "10.0.0.1:4100"; }).find("--token-file") != std::string::npos);
}

TEST_CASE("job settings: Top-K keeps a part of gradients that are not rounded, of few shards") {
  CHECK(refusal([](auto& s) { s.top_k = 0.01; }) == "accepted");
  CHECK(refusal([](auto& s) { s.top_k = 0.6; }) ==
        "--top-k 0.6: out of range; accepted: 0 (everything is summed), or 0.0001 to 0.5");
  CHECK(refusal([](auto& s) { s.top_k = -0.01; }).starts_with("--top-k -0.01: out of range"));
  CHECK(refusal([](auto& s) {
          s.top_k = std::numeric_limits<double>::quiet_NaN();
        }).starts_with("--top-k nan: out of range"));
  CHECK(refusal([](auto& s) { s.top_k = 0.01, s.wire = "float16"; }) ==
        "--top-k 0.01: the entries kept are not rounded, and --wire says float16; accepted: one of the two");
  CHECK(
      refusal([](auto& s) { s.top_k = 0.01, s.shards = s.global_batch = 128; }) ==
      "--top-k 0.01: each of 128 --shards would have a residual in the state; accepted: with --shards up to "
      "64");
  job_settings one_tenth;
  one_tenth.top_k = 0.1;
  CHECK(decode_job_settings(encode(one_tenth)).value() == one_tenth); // JS-1
}

TEST_CASE("job settings: TLS is whole or not at all") {
  CHECK(refusal([](auto& s) { s.tls_cert = "c"; }) ==
        "--tls-cert c: a certificate without its key; accepted: with --tls-key FILE");
  CHECK(refusal([](auto& s) { s.tls_key = "k", s.tls_ca = "a"; }) ==
        "--tls-key k: a key without its certificate; accepted: with --tls-cert FILE");
  CHECK(refusal([](auto& s) { s.tls_ca = "a"; }).starts_with("--tls-ca a: a director that verifies"));
  CHECK(refusal([](auto& s) {
          s.join = "h:1", s.token_file = "t", s.tls_cert = "c", s.tls_key = "k";
        }).starts_with("--tls-cert c: the director would not be verified"));
  CHECK(refusal([](auto& s) { s.tls_cert = "c", s.tls_key = "k"; }) == "accepted");
  CHECK(refusal([](auto& s) { s.tls_cert = "c", s.tls_key = "k", s.tls_ca = "a"; }) == "accepted");
  CHECK(refusal([](auto& s) { s.join = "h:1", s.token_file = "t", s.tls_ca = "a"; }) == "accepted");
}

TEST_CASE("job settings: addresses and devices are checked for form") {
  for (const auto* bad : {"", "host", ":80", "host:", "host:x", "host:70000", "a:b:1", "::1:80"})
    CHECK(refusal([bad](auto& s) { s.listen = bad; }).starts_with("--listen"));
  for (const auto* good : {"0.0.0.0:0", "node-1:4100", "[::1]:80"})
    CHECK(refusal([good](auto& s) { s.listen = good; }) == "accepted");
  CHECK(
      refusal([](auto& s) { s.join = "h:0", s.token_file = "t"; }).starts_with("--join h:0: not an address"));
  CHECK(refusal([](auto& s) { s.metrics = "9464"; }).starts_with("--metrics 9464"));
  CHECK(refusal([](auto& s) { s.device = "gpu"; }) ==
        "--device gpu: no such device; accepted: auto, cpu, cuda:N");
  CHECK(refusal([](auto& s) { s.device = "cuda:1"; }) == "accepted");
  CHECK(refusal([](auto& s) { s.transport = "shm"; }) == "accepted");
  CHECK(refusal([](auto& s) { s.transport = "udp"; }) ==
        "--transport udp: no such transport; accepted: tcp, shm");
  CHECK(refusal([](auto& s) { s.device = "cuda:"; }).starts_with("--device"));
  for (const auto* good : {"auto", "shm", "ring"})
    CHECK(refusal([good](auto& s) { s.collective = good; }) == "accepted");
  CHECK(refusal([](auto& s) { s.collective = "tree"; }) ==
        "--collective tree: no such collective; accepted: auto, shm, ring");
  for (const auto* good : {"lo", "eth0", "enp3s0f1", "br-1a2b", "eth0.100"})
    CHECK(refusal([good](auto& s) { s.network = good; }) == "accepted");
  for (const auto* bad : {"", "lo,eth0", "mlx5_0:1", "sixteencharacters"})
    CHECK(refusal([bad](auto& s) { s.network = bad; }).starts_with("--network"));
}

TEST_CASE("job settings: a fault that can never strike is refused") {
  const auto with = [](const char* spec) {
    return refusal([spec](auto& s) {
      s.steps = 600;
      s.faults = {parse_fault(spec).value()};
    });
  };
  CHECK(with("kill:worker=1@step=600") == "accepted");
  CHECK(with("kill:worker=2@step=3") ==
        "--fault kill:worker=2@step=3: there is no rank 2 with 2 workers; accepted: 0 to 1, any, all");
  CHECK(with("kill:worker=1@step=601") ==
        "--fault kill:worker=1@step=601: the job ends at step 600; accepted: step=1 to step=600");
  CHECK(with("bit-flip@step=3").find("--checkpoint-dir") != std::string::npos);
  CHECK(with("disk-full@step=3").find("--checkpoint-dir") != std::string::npos);
  CHECK(with("cut:worker=1@step=3") == "accepted");
}

job_settings unusual() {
  job_settings s;
  s.workers = 4;
  s.workers_max = 8;
  s.steps = 600;
  s.seed = std::numeric_limits<std::uint64_t>::max();
  s.bucket = 65536;
  s.wire = "bfloat16";
  s.transport = "shm";
  s.collective = "ring";
  s.network = "eth0";
  s.spin = 50us;
  s.checkpoint_dir = "a \"quoted\" dir/\xc3\xa4";
  s.resume = *parse_resume("300");
  s.detect_after = 1234567891ns;
  s.faults = {parse_fault("kill:worker=any@every=1500ms").value(),
              parse_fault("stop:worker=2@step=60,for=5s,times=always").value()};
  s.events = "events.jsonl";
  s.tls_cert = "cert.pem";
  s.tls_key = "key.pem";
  s.tls_ca = "ca.pem";
  s.flight = "flight dumps";
  s.quiet = true;
  s.extra = {{"data", "/data"}, {"hidden", "256"}};
  return s;
}

TEST_CASE("job settings: survive their text form (JS-1)") {
  for (const auto& s : {job_settings{}, unusual()}) {
    const auto back = decode_job_settings(encode(s));
    INFO((back ? "" : back.failure().text));
    REQUIRE(back);
    CHECK(*back == s);
  }
}

TEST_CASE("job settings: text that would not survive is refused beforehand (JS-1)") {
  CHECK(refusal([](auto& s) { s.checkpoint_dir = "a\xff"; }) ==
        "--checkpoint-dir: not UTF-8; accepted: text in UTF-8");
  CHECK(refusal([](auto& s) { s.extra["data"] = "\xc3"; }).starts_with("--data: not UTF-8"));
  CHECK(refusal([](auto& s) { s.events = std::string(5000, 'x'); }).starts_with("--events: 5000 bytes"));
}

TEST_CASE("job settings: damaged text is refused, never half read (JS-2)") {
  const auto good = encode(unusual());
  for (std::size_t length = 0; length < good.size(); ++length)
    REQUIRE_FALSE(decode_job_settings(std::string_view{good}.substr(0, length)));
  const auto with = [&good](std::string_view from, std::string_view to) {
    auto text = good;
    text.replace(text.find(from), from.size(), to);
    const auto parsed = decode_job_settings(text);
    return parsed ? errc::internal : parsed.failure().code;
  };
  CHECK(with("\"form\":1", "\"form\":2") == errc::wrong_version);
  CHECK(with("\"workers\":4", "\"workers\":-4") == errc::corrupt);
  CHECK(with("\"workers\":4", "\"workers\":4294967298") == errc::corrupt);
  CHECK(with("\"workers\":4", "\"workers\":\"4\"") == errc::corrupt);
  CHECK(with("\"workers\":4", "\"wrokers\":4") == errc::corrupt);
  CHECK(with("\"resume\":\"300\"", "\"resume\":\"x\"") == errc::corrupt);
  CHECK(with("kill:worker", "kil:worker") == errc::corrupt);
  CHECK(with("\"workers\":4", "\"workers\":9") == errc::bad_argument);
}

} // namespace
} // namespace troupe

// fuzz_corpus: runs every target on its corpus, its seeds and seeded mutations of both. Deterministic.
//
// Usage: fuzz_corpus CORPUS_DIR [TARGET [NUMBER]]     replay; NUMBER: that mutation alone
//        fuzz_corpus --write CORPUS_DIR               writes the seeds, as seed-N
// A crash says which input it was: the target and the file or the mutation's number.
#include <algorithm>
#include <array>
#include <charconv>
#include <csignal>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <optional>

#include <unistd.h>

#include "tests/fuzz/mutations.hpp"
#include "tests/fuzz/targets.hpp"

namespace {

using namespace troupe::fuzz;
namespace files = std::filesystem;

// What is being run, as a signal handler can print it.
std::array<char, 512> current{}; // NOLINT

void note(std::string_view target, const std::string& what) {
  std::snprintf(current.data(), current.size(), "fuzz_corpus: while at %.*s %s\n",
                static_cast<int>(target.size()), target.data(), what.c_str());
}

void on_crash(int number) {
  [[maybe_unused]] const auto written = ::write(STDERR_FILENO, current.data(), std::strlen(current.data()));
  ::signal(number, SIG_DFL);
  ::raise(number);
}

bytes content_of(const files::path& file) {
  std::ifstream in{file, std::ios::binary};
  const std::string text{std::istreambuf_iterator<char>{in}, {}};
  return bytes_of(text);
}

std::vector<files::path> corpus_files(const files::path& folder) {
  std::vector<files::path> found;
  if (files::is_directory(folder))
    for (const auto& entry : files::directory_iterator{folder})
      if (entry.is_regular_file()) found.push_back(entry.path());
  std::ranges::sort(found);
  return found;
}

int replay(const target& one, const files::path& corpus, std::optional<std::uint64_t> only) {
  auto inputs = one.seeds();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    note(one.name, "seed " + std::to_string(i));
    one.run(inputs[i]);
  }
  const auto found = corpus_files(corpus / one.name);
  for (const auto& file : found) {
    note(one.name, file.filename().string());
    inputs.push_back(content_of(file));
    one.run(inputs.back());
  }
  if (found.empty() || inputs.empty()) {
    std::fprintf(stderr, "fuzz_corpus: %s has no corpus\n", (corpus / one.name).c_str());
    return 1;
  }
  for (std::uint64_t number = only.value_or(0); number < (only ? *only + 1 : one.mutations); ++number) {
    note(one.name, "mutation " + std::to_string(number));
    one.run(mutated(inputs, one.name, number));
  }
  std::printf("%-14.*s %3zu inputs, %zu mutations\n", static_cast<int>(one.name.size()), one.name.data(),
              inputs.size(), one.mutations);
  return 0;
}

int write_seeds(const files::path& corpus) {
  for (const auto* one : all_targets()) {
    files::create_directories(corpus / one->name);
    const auto seeds = one->seeds();
    for (std::size_t i = 0; i < seeds.size(); ++i) {
      std::ofstream out{corpus / one->name / ("seed-" + std::to_string(i)), std::ios::binary};
      out.write(reinterpret_cast<const char*>(seeds[i].data()),
                static_cast<std::streamsize>(seeds[i].size()));
    }
  }
  return 0;
}

} // namespace

int main(int argc, char** argv) {
  const std::vector<std::string> arguments(argv + 1, argv + argc);
  if (arguments.size() == 2 && arguments[0] == "--write") return write_seeds(arguments[1]);
  if (arguments.empty() || arguments.size() > 3) {
    std::fprintf(stderr, "usage: fuzz_corpus CORPUS_DIR [TARGET [NUMBER]] | --write CORPUS_DIR\n");
    return 2;
  }
  for (const int number : {SIGABRT, SIGSEGV, SIGFPE, SIGILL, SIGBUS})
    ::signal(number, on_crash);
  std::optional<std::uint64_t> only;
  if (arguments.size() == 3) only = std::strtoull(arguments[2].c_str(), nullptr, 10);
  int failed = 0;
  bool any = false;
  for (const auto* one : all_targets()) {
    if (arguments.size() > 1 && arguments[1] != one->name) continue;
    any = true;
    failed |= replay(*one, arguments[0], only);
  }
  return any ? failed : 2;
}

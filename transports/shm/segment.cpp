#include "transports/shm/segment.hpp"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <optional>
#include <string_view>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "runtime/base/invariant.hpp"
#include "runtime/base/limits.hpp"
#include "runtime/policy/canonical_plan.hpp"
#include "transports/shm/group_line.hpp"
#include "transports/shm/limits.hpp"

namespace troupe {

namespace {

constexpr std::uint64_t segment_magic = 0x65636e6d75735f74ULL;
constexpr std::uint32_t segment_version = 3;
constexpr std::size_t page_bytes = 4096;
constexpr std::size_t line_bytes = 64;
constexpr std::size_t lines_at = (sizeof(segment_header) + 63) / 64 * 64;
constexpr int seals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;

std::size_t round_up(std::size_t value, std::size_t unit) {
  return (value + unit - 1) / unit * unit;
}

std::size_t words_at(std::uint32_t world) {
  return lines_at + world * sizeof(arrival_line);
}

std::size_t header_bytes(const collective_shape& shape) {
  const auto words = shape.group_bytes == 0 ? 0 : limits::rank_groups_max * sizeof(group_words);
  return round_up(words_at(shape.world) + words, page_bytes);
}

// Adds the areas of rank groups at the end. Half of a member's staging holds at least a cache line a rank.
expected<void> add_groups(segment_layout& layout, const collective_shape& shape) {
  if (shape.group_bytes == 0) return {};
  const auto half_min = std::max(shape.world, std::uint32_t{2}) * line_bytes;
  if (shape.group_bytes <= limits::shm_segment_bytes_max) {
    layout.half_bytes = std::max(round_up(shape.group_bytes / 2, line_bytes), half_min);
    layout.words_at = words_at(shape.world);
    layout.groups_at = layout.bytes;
    layout.staging_at = round_up(shape.world * (sizeof(arrival_line) + sizeof(group_line)), page_bytes);
    layout.group_stride = round_up(layout.staging_at + shape.world * 2 * layout.half_bytes, page_bytes);
    layout.bytes += limits::rank_groups_max * layout.group_stride;
    if (layout.bytes <= limits::shm_segment_bytes_max) return {};
  }
  return error{errc::bad_argument, "collective: " + std::to_string(limits::rank_groups_max) + " groups of " +
                                       std::to_string(shape.world) + " ranks with " +
                                       std::to_string(shape.group_bytes) + " bytes each exceed " +
                                       std::to_string(limits::shm_segment_bytes_max) + " bytes"};
}

error system_error(errc code, const std::string& what) {
  return {code, what + ": " + std::strerror(errno)};
}

std::uint64_t digest_of(std::span<const std::uint32_t> cuts) {
  auto digest = std::uint64_t{0xcbf29ce484222325}; // FNV-1a, by cuts
  for (const auto cut : cuts)
    digest = (digest ^ cut) * 0x100000001b3;
  return digest;
}

// A file number that closes itself unless it is taken over.
class open_file {
public:
  explicit open_file(int number)
      : number_{number} {}
  ~open_file() {
    if (number_ >= 0) ::close(number_);
  }
  open_file(const open_file&) = delete;
  open_file& operator=(const open_file&) = delete;
  [[nodiscard]] int number() const { return number_; }
  [[nodiscard]] int release() { return std::exchange(number_, -1); }

private:
  int number_;
};

// "shm:/proc/PID/fd/N:BYTES:GENERATION:INODE"
struct parsed_descriptor {
  std::string path;
  std::uint64_t bytes{0};
  std::uint64_t generation{0};
  std::uint64_t inode{0};
};

bool skip(std::string_view& text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

bool read_number(std::string_view& text, std::uint64_t& value) {
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (failure != std::errc{} || end == text.data()) return false;
  text.remove_prefix(static_cast<std::size_t>(end - text.data()));
  return true;
}

std::optional<parsed_descriptor> parse(std::string_view text) {
  if (text.size() > limits::shm_descriptor_bytes_max) return std::nullopt;
  parsed_descriptor parsed;
  std::uint64_t pid = 0;
  std::uint64_t number = 0;
  const bool well_formed = skip(text, "shm:/proc/") && read_number(text, pid) && skip(text, "/fd/") &&
                           read_number(text, number) && skip(text, ":") && read_number(text, parsed.bytes) &&
                           skip(text, ":") && read_number(text, parsed.generation) && skip(text, ":") &&
                           read_number(text, parsed.inode) && text.empty();
  if (!well_formed) return std::nullopt;
  parsed.path = "/proc/" + std::to_string(pid) + "/fd/" + std::to_string(number);
  return parsed;
}

// SG-1: the number may by now name another file of the director; nothing of that may be touched.
bool is_the_segment(int file, const parsed_descriptor& expected_file) {
  struct stat status {};
  if (::fstat(file, &status) != 0) return false;
  return S_ISREG(status.st_mode) && status.st_ino == expected_file.inode &&
         static_cast<std::uint64_t>(status.st_size) == expected_file.bytes &&
         ::fcntl(file, F_GET_SEALS) == seals;
}

} // namespace

expected<segment_layout> layout_of(const collective_shape& shape) {
  if (shape.world == 0 || shape.world > limits::workers_max)
    return error{errc::bad_argument, "collective: world " + std::to_string(shape.world) + " is not in 1.." +
                                         std::to_string(limits::workers_max)};
  if (shape.shards == 0 || shape.shards > limits::shards_max)
    return error{errc::bad_argument, "collective: " + std::to_string(shape.shards) +
                                         " shards are not in 1.." + std::to_string(limits::shards_max)};
  constexpr auto elements_max = limits::bulk_bytes_max / sizeof(float);
  if (shape.elements == 0 || shape.elements > elements_max)
    return error{errc::bad_argument, "collective: " + std::to_string(shape.elements) +
                                         " elements are not in 1.." + std::to_string(elements_max)};
  if (!cuts_fit(shape)) return error{errc::bad_argument, "collective: the cuts do not fit the shards"};
  segment_layout layout;
  const auto cuts = cuts_of(shape);
  layout.slots = first_slots(cuts).back();
  layout.sums =
      static_cast<std::uint32_t>(owned_nodes(cuts.shards, cuts.all().first, cuts.all().count).size());
  layout.stride = round_up(shape.elements * sizeof(float), 64);
  layout.exchanged = layout.stride <= limits::shm_exchange_bytes_max && shape.world > 1;
  layout.slots_at = header_bytes(shape);
  const std::size_t result_slots = layout.exchanged ? 2 * std::size_t{layout.slots} : layout.sums;
  const auto total_slots = layout.slots + result_slots;
  if (layout.stride > limits::shm_segment_bytes_max / total_slots)
    return error{errc::bad_argument, "collective: " + std::to_string(total_slots) + " slots of " +
                                         std::to_string(layout.stride) + " bytes exceed " +
                                         std::to_string(limits::shm_segment_bytes_max) + " bytes"};
  layout.result_at = layout.slots_at + layout.slots * layout.stride;
  layout.bytes = round_up(layout.result_at + result_slots * layout.stride, page_bytes);
  if (auto added = add_groups(layout, shape); !added) return added.failure();
  return layout;
}

expected<std::unique_ptr<segment>> segment::create(const collective_shape& shape) {
  const auto layout = layout_of(shape);
  if (!layout) return layout.failure();
  open_file file{::memfd_create("troupe-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING)};
  if (file.number() < 0) return system_error(errc::storage_failed, "shared segment");
  if (::ftruncate(file.number(), static_cast<off_t>(layout->bytes)) != 0 ||
      ::fcntl(file.number(), F_ADD_SEALS, seals) != 0)
    return system_error(errc::storage_failed,
                        "shared segment of " + std::to_string(layout->bytes) + " bytes");
  std::unique_ptr<segment> made{new segment{*layout, shape.world}};
  if (auto mapped = made->map(file.number(), layout->slots_at); !mapped) return mapped.failure();
  auto& header = made->header(); // the meeting words are zero, as the system made them
  header.magic = segment_magic;
  header.version = segment_version;
  header.generation = shape.generation.value();
  header.world = shape.world;
  header.shards = shape.shards;
  header.slots = layout->slots;
  header.elements = shape.elements;
  header.group_bytes = shape.group_bytes;
  header.cuts = digest_of(shape.cuts);
  header.bytes = layout->bytes;
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return system_error(errc::storage_failed, "shared segment");
  made->file_ = file.release();
  made->descriptor_ = "shm:/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(made->file_) + ":" +
                      std::to_string(layout->bytes) + ":" + std::to_string(shape.generation.value()) + ":" +
                      std::to_string(status.st_ino);
  return made;
}

expected<std::unique_ptr<segment>> segment::open(const std::string& descriptor,
                                                 const collective_shape& shape) {
  const auto layout = layout_of(shape);
  if (!layout) return layout.failure();
  const auto parsed = parse(descriptor);
  if (!parsed)
    return error{errc::bad_argument, "'" + descriptor + "' does not name a shared segment of this host"};
  if (parsed->bytes != layout->bytes || parsed->generation != shape.generation.value())
    return error{errc::bad_argument, "'" + descriptor + "' is not for generation " +
                                         to_string(shape.generation) + " with " +
                                         std::to_string(layout->bytes) + " bytes"};
  // Non-blocking, in case that the number names something else by now.
  const open_file file{::open(parsed->path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY)};
  if (file.number() < 0) {
    // Everything else means that the number or its process is gone, or names something else by now.
    const bool our_side = errno == EMFILE || errno == ENFILE || errno == ENOMEM || errno == EACCES;
    return system_error(our_side ? errc::storage_failed : errc::aborted, "'" + descriptor + "'");
  }
  if (!is_the_segment(file.number(), *parsed))
    return error{errc::aborted, "'" + descriptor + "' is gone: its generation has ended"};
  std::unique_ptr<segment> opened{new segment{*layout, shape.world}};
  if (auto mapped = opened->map(file.number(), layout->bytes); !mapped) return mapped.failure();
  if (auto fits = opened->check(shape); !fits) return fits.failure();
  return opened;
}

segment::~segment() {
  if (!mapping_.empty()) ::munmap(mapping_.data(), mapping_.size());
  if (file_ >= 0) ::close(file_);
}

expected<void> segment::map(int file, std::size_t bytes) {
  void* memory = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (memory == MAP_FAILED)
    return system_error(errc::storage_failed, "mapping " + std::to_string(bytes) + " shared bytes");
  mapping_ = {static_cast<std::byte*>(memory), bytes};
  return {};
}

expected<void> segment::check(const collective_shape& shape) const {
  const auto& found = header();
  const bool fits = found.magic == segment_magic && found.version == segment_version &&
                    found.generation == shape.generation.value() && found.world == shape.world &&
                    found.shards == shape.shards && found.slots == layout_.slots &&
                    found.elements == shape.elements && found.group_bytes == shape.group_bytes &&
                    found.cuts == digest_of(shape.cuts) && found.bytes == layout_.bytes;
  if (fits) return {};
  return error{errc::bad_argument,
               "shared segment of generation " + std::to_string(found.generation) + ", world " +
                   std::to_string(found.world) + ", " + std::to_string(found.shards) + " shards, " +
                   std::to_string(found.elements) + " elements; expected generation " +
                   to_string(shape.generation) + ", world " + std::to_string(shape.world) + ", " +
                   std::to_string(shape.shards) + " shards, " + std::to_string(shape.elements) + " elements"};
}

segment_header& segment::header() const {
  return *reinterpret_cast<segment_header*>(mapping_.data());
}

std::span<arrival_line> segment::lines() const {
  return {reinterpret_cast<arrival_line*>(mapping_.data() + lines_at), world_};
}

std::byte* segment::bytes_at(std::size_t offset) const {
  invariant(offset < mapping_.size(), "SG-2: offsets lie inside the mapping");
  return mapping_.data() + offset;
}

float* segment::at(std::size_t offset) const {
  return reinterpret_cast<float*>(bytes_at(offset));
}

group_words& segment::words_of(std::uint32_t group) const {
  return *reinterpret_cast<group_words*>(bytes_at(layout_.words_at + group * sizeof(group_words)));
}

void segment::abort() noexcept {
  abort_meeting(header().words);
  if (layout_.words_at == 0) return;
  for (std::uint32_t group = 0; group < limits::rank_groups_max; ++group)
    abort_group(words_of(group));
}

expected<void> segment::touch(std::size_t offset, std::size_t bytes) const {
  if (bytes == 0) return {};
  invariant(offset <= mapping_.size() && bytes <= mapping_.size() - offset,
            "SG-2: offsets lie inside the mapping");
  const auto begin = offset / page_bytes * page_bytes;
  const auto length = offset + bytes - begin;
  if (::madvise(mapping_.data() + begin, length, MADV_POPULATE_WRITE) == 0) return {};
  if (errno != EINVAL)
    return system_error(errc::storage_failed, "allocating " + std::to_string(bytes) + " shared bytes");
  // Systems before Linux 5.14: reading a page of a shared file allocates and maps it as well.
  for (auto page = begin; page < begin + length; page += page_bytes)
    static_cast<void>(*reinterpret_cast<const volatile std::byte*>(mapping_.data() + page));
  return {};
}

} // namespace troupe

#include "runtime/data/idx_stream.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>
#include <vector>

#include <zlib.h>

#include "runtime/data/limits.hpp"

namespace troupe {

struct idx_stream::state {
  state(storage& source, std::string file, std::uint64_t size)
      : files{source}
      , path{std::move(file)}
      , file_bytes{size}
      , buffer(static_cast<std::size_t>(std::min<std::uint64_t>(size, limits::idx_read_bytes))) {}
  ~state() {
    if (gzip) ::inflateEnd(&inflater);
  }
  state(const state&) = delete;
  state& operator=(const state&) = delete;

  // Makes `input` non-empty, unless the file is at its end.
  expected<void> refill() {
    if (!input.empty() || offset == file_bytes) return {};
    const auto wanted = std::min<std::uint64_t>(buffer.size(), file_bytes - offset);
    const std::span<std::byte> piece{buffer.data(), static_cast<std::size_t>(wanted)};
    if (auto read = files.read_at(path, offset, piece); !read)
      return error{errc::bad_data, "dataset file '" + path + "': cannot be read: " + read.failure().text};
    offset += wanted;
    input = piece;
    return {};
  }

  storage& files;
  std::string path;
  std::uint64_t file_bytes;
  std::uint64_t offset{0}; // of the next piece of the file
  std::vector<std::byte> buffer;
  std::span<const std::byte> input; // read, not yet consumed
  bool gzip{false};
  bool member_ended{false}; // the last gzip member is complete, checksum and all
  z_stream inflater{};
};

idx_stream::idx_stream(std::unique_ptr<state> opened)
    : state_{std::move(opened)} {}
idx_stream::~idx_stream() = default;
idx_stream::idx_stream(idx_stream&&) noexcept = default;
idx_stream& idx_stream::operator=(idx_stream&&) noexcept = default;

error idx_stream::bad(const std::string& text) const {
  return {errc::bad_data, "dataset file '" + state_->path + "': " + text};
}

expected<idx_stream> idx_stream::open(storage& files, const std::string& path) {
  const auto size = files.file_bytes(path);
  if (!size)
    return error{errc::bad_data, "dataset file '" + path + "': cannot be read: " + size.failure().text};
  auto opened = std::make_unique<state>(files, path, size.value());
  if (auto filled = opened->refill(); !filled) return filled.failure();
  const auto start = opened->input;
  if (start.size() >= 2 && start[0] == std::byte{0x1f} && start[1] == std::byte{0x8b}) {
    constexpr int gzip_only = 15 + 16; // the largest window, gzip framing
    if (::inflateInit2(&opened->inflater, gzip_only) != Z_OK) throw std::bad_alloc{};
    opened->gzip = true;
  }
  return idx_stream{std::move(opened)};
}

std::uint64_t idx_stream::content_bytes_max() const {
  return state_->gzip ? state_->file_bytes * limits::deflate_ratio_max : state_->file_bytes;
}

// Some bytes of content; none at its end.
expected<std::size_t> idx_stream::read_some(std::span<std::byte> into) {
  state& s = *state_;
  if (auto filled = s.refill(); !filled) return filled.failure();
  if (!s.gzip) {
    const std::size_t n = std::min(into.size(), s.input.size());
    if (n > 0) std::memcpy(into.data(), s.input.data(), n);
    s.input = s.input.subspan(n);
    return n;
  }
  constexpr std::size_t piece_max = std::size_t{1} << 30; // zlib counts in 32 bits
  into = into.first(std::min(into.size(), piece_max));
  while (true) {
    if (auto filled = s.refill(); !filled) return filled.failure();
    if (s.input.empty()) {
      if (s.member_ended) return std::size_t{0};
      return bad("truncated: the gzip data ends after " + std::to_string(s.file_bytes) +
                 " bytes of file, before its checksum");
    }
    if (s.member_ended) { // RFC 1952: members may follow one another
      if (s.input.front() != std::byte{0x1f})
        return bad("trailing bytes after the gzip data, accepted are none");
      ::inflateReset(&s.inflater);
      s.member_ended = false;
    }
    s.inflater.next_in = reinterpret_cast<Bytef*>(const_cast<std::byte*>(s.input.data()));
    s.inflater.avail_in = static_cast<uInt>(s.input.size());
    s.inflater.next_out = reinterpret_cast<Bytef*>(into.data());
    s.inflater.avail_out = static_cast<uInt>(into.size());
    const int result = ::inflate(&s.inflater, Z_NO_FLUSH);
    s.input = s.input.last(s.inflater.avail_in);
    const std::size_t produced = into.size() - s.inflater.avail_out;
    s.member_ended = result == Z_STREAM_END;
    if (result == Z_MEM_ERROR) throw std::bad_alloc{};
    if (result != Z_OK && result != Z_STREAM_END && result != Z_BUF_ERROR) {
      const char* why = s.inflater.msg != nullptr ? s.inflater.msg : "not a gzip member";
      return bad("damaged gzip data before byte " + std::to_string(s.offset - s.input.size()) +
                 " of the file: " + why);
    }
    if (produced > 0) return produced;
  }
}

expected<void> idx_stream::read(std::span<std::byte> into, std::string_view what) {
  std::size_t done = 0;
  while (done < into.size()) {
    const auto some = read_some(into.subspan(done));
    if (!some) return some.failure();
    if (some.value() == 0)
      return bad("truncated: holds " + std::to_string(done) + " of " + std::to_string(into.size()) +
                 " bytes of " + std::string{what});
    done += some.value();
  }
  return {};
}

expected<void> idx_stream::expect_end(std::string_view after) {
  std::byte extra{};
  const auto some = read_some({&extra, 1});
  if (!some) return some.failure();
  if (some.value() != 0) return bad("trailing bytes after " + std::string{after} + ", accepted are none");
  return {};
}

} // namespace troupe

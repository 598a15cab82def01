#include "transports/ucx/frame.hpp"

namespace troupe {
namespace {

frame_fault check(const frame_header& header, job_id job) {
  if (header.magic != ucx_frame_magic) return frame_fault::malformed;
  if (header.version != ucx_protocol_version) return frame_fault::wrong_version;
  if (header.kind < frame_kind::hello || header.kind > frame_kind::bulk_piece) return frame_fault::malformed;
  if (!job.valid() || job != job_id{header.job_high, header.job_low}) return frame_fault::wrong_job;
  if (!incarnation_id{header.from_high, header.from_low}.valid() || header.path == 0)
    return frame_fault::malformed;
  return frame_fault::none;
}

} // namespace

frame_header make_frame_header(frame_kind kind, job_id job, incarnation_id from, std::uint64_t path,
                               std::uint64_t sequence) {
  return {.magic = ucx_frame_magic,
          .version = ucx_protocol_version,
          .kind = kind,
          .job_high = job.high(),
          .job_low = job.low(),
          .from_high = from.high(),
          .from_low = from.low(),
          .path = path,
          .sequence = sequence};
}

std::optional<frame_view> read_frame(std::span<const std::byte> bytes, job_id job, frame_fault& fault) {
  fault = frame_fault::malformed;
  const auto header = read_body<frame_header>(bytes);
  if (!header) return std::nullopt;
  fault = check(*header, job);
  if (fault == frame_fault::none && header->kind == frame_kind::bulk_piece) fault = frame_fault::malformed;
  if (fault != frame_fault::none) return std::nullopt;
  return frame_view{.kind = header->kind,
                    .from = incarnation_id{header->from_high, header->from_low},
                    .path = header->path,
                    .sequence = header->sequence,
                    .body = bytes.subspan(sizeof(frame_header))};
}

std::optional<piece_view> read_piece_header(std::span<const std::byte> bytes, job_id job,
                                            frame_fault& fault) {
  fault = frame_fault::malformed;
  if (bytes.size() != sizeof(piece_header)) return std::nullopt;
  const auto piece = read_body<piece_header>(bytes);
  fault = check(piece->frame, job);
  if (fault == frame_fault::none && piece->frame.kind != frame_kind::bulk_piece)
    fault = frame_fault::malformed;
  if (fault != frame_fault::none) return std::nullopt;
  return piece_view{.from = incarnation_id{piece->frame.from_high, piece->frame.from_low},
                    .path = piece->frame.path,
                    .transfer = piece->transfer,
                    .offset = piece->offset,
                    .asks = piece->frame.sequence != 0};
}

} // namespace troupe

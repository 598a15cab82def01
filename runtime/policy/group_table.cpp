#include "runtime/policy/group_table.hpp"

#include <algorithm>
#include <numeric>
#include <utility>

#include "runtime/base/limits.hpp"

namespace troupe {

namespace {

std::vector<std::uint32_t> all_ranks(std::uint32_t world) {
  std::vector<std::uint32_t> ranks(world);
  std::iota(ranks.begin(), ranks.end(), 0U);
  return ranks;
}

error ended() {
  return {errc::aborted, "the generation, or the group after calls that did not fit, was ended"};
}

} // namespace

void group_outcome::deliver() {
  if (bytes != nullptr) std::copy(bytes->begin(), bytes->end(), out.begin());
  if (under_way != nullptr) --*under_way;
  done(std::move(result));
}

group_table::group_table(std::uint32_t world, group_sink sink)
    : group_table{std::make_shared<origin>(origin{std::move(sink)}), all_ranks(world)} {}

group_table::group_table(std::shared_ptr<origin> shared, std::vector<std::uint32_t> first_ranks)
    : shared_{std::move(shared)}
    , first_ranks_{std::move(first_ranks)}
    , queues_(first_ranks_.size())
    , under_way_(first_ranks_.size())
    , reduction_{world()}
    , split_calls_(first_ranks_.size()) {
  for (auto& one : under_way_)
    one = std::make_shared<std::atomic<std::uint32_t>>(0);
}

expected<void> group_table::room(std::uint32_t rank) const {
  return aborted_ ? expected<void>{} : check_room(*under_way_[rank]);
}

void group_table::start(std::uint32_t rank, const group_operation& what, group_done done) {
  auto fits = check_call(what, rank, world());
  call made{.shown = signature_of(what), .what = what, .in = {}, .done = std::move(done), .refused = fits};
  if (fits && parts_of(what, rank, world()).in > 0) made.in.assign(what.in.begin(), what.in.end());
  add(rank, std::move(made));
}

expected<std::shared_ptr<group_table>>
group_table::split(std::uint32_t rank, std::span<const std::uint32_t> ranks, group_done agreed) {
  auto fits = check_split(ranks, world());
  call made{
      .shown = signature_of_split(ranks), .what = {}, .in = {}, .done = std::move(agreed), .refused = fits};
  if (!fits) {
    add(rank, std::move(made));
    return fits.failure();
  }
  const auto number = split_calls_[rank]++;
  auto table = open_split(number, ranks);
  const auto same = made.shown == splits_[number].shown;
  add(rank, std::move(made));
  if (aborted_) return ended();
  if (same && table == nullptr)
    return error{errc::no_credit, "more than " + std::to_string(limits::rank_groups_max) + " rank groups"};
  return std::find(ranks.begin(), ranks.end(), rank) == ranks.end() ? nullptr : table;
}

std::shared_ptr<group_table> group_table::open_split(std::size_t number,
                                                     std::span<const std::uint32_t> ranks) {
  if (number < splits_.size()) return splits_[number].table;
  splits_.push_back({signature_of_split(ranks), nullptr});
  if (shared_->groups == limits::rank_groups_max) return nullptr;
  ++shared_->groups;
  std::vector<std::uint32_t> first_ranks;
  for (const auto rank : ranks)
    first_ranks.push_back(first_ranks_[rank]);
  splits_.back().table.reset(new group_table{shared_, std::move(first_ranks)});
  return splits_.back().table;
}

void group_table::abort() {
  abort_splits(0);
  close();
}

void group_table::abort_splits(std::size_t from) {
  for (; from < splits_.size(); ++from)
    if (splits_[from].table != nullptr) splits_[from].table->abort();
}

void group_table::close() {
  aborted_ = true;
  for (std::uint32_t rank = 0; rank < world(); ++rank)
    while (!queues_[rank].empty())
      finish_head(rank, ended());
}

void group_table::add(std::uint32_t rank, call made) {
  queues_[rank].push_back(std::move(made));
  ++*under_way_[rank];
  if (aborted_)
    finish_head(rank, ended());
  else
    advance();
}

void group_table::advance() {
  while (!aborted_ && (refuse_heads() || run_pair() || run_together())) {
  }
}

bool group_table::refuse_heads() {
  bool any = false;
  for (std::uint32_t rank = 0; rank < world(); ++rank)
    while (!queues_[rank].empty() && !head(rank).refused) {
      finish_head(rank, head(rank).refused);
      any = true;
    }
  return any;
}

// A send and its receive, once both head their queues. A peer that waits for all while it is waited for will
// never come either.
bool group_table::run_pair() {
  for (std::uint32_t rank = 0; rank < world(); ++rank) {
    if (queues_[rank].empty() || !is_pairwise(head(rank).what.call)) continue;
    const auto peer = head(rank).what.peer;
    if (queues_[peer].empty()) continue;
    if (is_pairwise(head(peer).what.call) && head(peer).what.peer != rank) continue;
    const std::uint32_t both[]{rank, peer};
    if (auto fits = check_partners({rank, head(rank).shown}, {peer, head(peer).shown}); !fits)
      end_misfit(both, fits.failure());
    else
      head(rank).what.call == group_call::send ? carry_over(rank, peer) : carry_over(peer, rank);
    return true;
  }
  return false;
}

void group_table::carry_over(std::uint32_t from, std::uint32_t to) {
  auto bytes = std::make_shared<const std::vector<std::byte>>(std::move(head(from).in));
  finish_head(from, {});
  finish_head(to, {}, std::move(bytes));
}

bool group_table::run_together() {
  std::vector<call_signature> shown;
  for (const auto& queue : queues_) {
    if (queue.empty() || is_pairwise(queue.front().what.call)) return false;
    shown.push_back(queue.front().shown);
  }
  if (auto fits = check_alike(shown); !fits) {
    end_misfit(all_ranks(world()), fits.failure());
    return true;
  }
  if (shown[0].call == split_call) ++agreed_splits_;
  const auto results = compute(head(0));
  for (std::uint32_t rank = 0; rank < world(); ++rank)
    finish_head(rank, {}, results[rank]);
  return true;
}

// By rank: what comes out.
std::vector<shared_bytes> group_table::compute(const call& first) {
  const auto bytes = first.what.elements * size_of(first.what.type);
  std::vector<shared_bytes> results(world());
  const auto for_all = [&](const shared_bytes& one) { std::fill(results.begin(), results.end(), one); };
  switch (first.what.call) {
  case group_call::all_reduce:
    for_all(reduced(first, 0));
    break;
  case group_call::reduce_scatter:
    for (std::uint32_t rank = 0; rank < world(); ++rank)
      results[rank] = reduced(first, rank);
    break;
  case group_call::all_gather:
    for_all(gathered(0, bytes));
    break;
  case group_call::broadcast:
    for_all(std::make_shared<const std::vector<std::byte>>(head(first.what.peer).in));
    break;
  case group_call::all_to_all:
    for (std::uint32_t rank = 0; rank < world(); ++rank)
      results[rank] = gathered(rank, bytes);
    break;
  case group_call::send:
  case group_call::receive:
  case group_call::barrier:
    break;
  }
  return results;
}

// Part `part` of what everybody put in, reduced.
shared_bytes group_table::reduced(const call& first, std::size_t part) {
  const auto bytes = first.what.elements * size_of(first.what.type);
  std::vector<const std::byte*> inputs;
  for (const auto& queue : queues_)
    inputs.push_back(queue.front().in.data() + part * bytes);
  auto result = std::make_shared<std::vector<std::byte>>(bytes);
  reduction_.evaluate(first.what.type, first.what.op, inputs, first.what.elements, result->data());
  return result;
}

// Part `part` of what everybody put in, by rank.
shared_bytes group_table::gathered(std::size_t part, std::size_t bytes) const {
  auto result = std::make_shared<std::vector<std::byte>>();
  for (const auto& queue : queues_) {
    const auto from = queue.front().in.begin() + static_cast<std::ptrdiff_t>(part * bytes);
    result->insert(result->end(), from, from + static_cast<std::ptrdiff_t>(bytes));
  }
  return result;
}

void group_table::finish_head(std::uint32_t rank, expected<void> result, shared_bytes bytes) {
  auto over = std::move(head(rank));
  queues_[rank].pop_front();
  shared_->sink(first_ranks_[rank],
                {std::move(over.done), std::move(result), over.what.out, std::move(bytes), under_way_[rank]});
}

// The group is of no more use; a split that not all agreed on leaves no group behind.
void group_table::end_misfit(std::span<const std::uint32_t> ranks, const error& why) {
  for (const auto rank : ranks)
    finish_head(rank, why);
  abort_splits(agreed_splits_);
  close();
}

} // namespace troupe

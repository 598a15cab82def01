// Level hub: what ranks of a generation that sums in two levels say to each other, beside the level between.
//
// Flow:     transport -> [hub] -> the member of this process; what is not its own -> the level between
// Owns:     the newest member, also once it has left: it still passes on who was the first to end (LM-2),
//           until the next one enters; what peers said of generations still to come. The transport is lent,
//           and shared with the level between (`share`).
// Runs on:  the event loop; the executors may be asked for on any thread.
// A host's first rank makes the level inside, and tells the others where it is. Whoever ends says so (LM-2).
// Invariants:
//   LH-1    a word reaches only the member of its generation, only from a rank that it has a path to (CO-3).
//   LH-2    what is remembered of peers that are ahead is bounded, and forgotten with their generation.
//   LH-3    of a rank of the own host that cannot be reached, or no more, the handler is told; of others the
//           level between tells.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/seams/collective.hpp"
#include "runtime/seams/executor.hpp"
#include "runtime/seams/transport.hpp"

namespace troupe {

class level_member;

enum class level_word : std::uint8_t {
  here = 1, // the sender is connected; a host's first rank says where the level inside is
  ended,    // the sender has aborted this generation
};

struct level_frame {
  level_word what{level_word::here};
  std::uint64_t generation{0};
  // Of an end: which rank was the first, and how many sums it had called for.
  std::uint64_t called{0};
  std::uint32_t rank{0};
  std::string_view place{};
};
// Nullopt: it is not one, or not whole.
[[nodiscard]] std::optional<level_frame> decode_level_frame(std::span<const std::byte> payload);
[[nodiscard]] std::vector<std::byte> encode(const level_frame& frame);

class level_hub final : public transport_listener, public std::enable_shared_from_this<level_hub> {
public:
  level_hub(executor& loop, executor& device, collective& inside)
      : loop_{loop}
      , device_{device}
      , inside_{inside}
      , share_{*this} {}

  [[nodiscard]] executor& loop() const { return loop_; }
  [[nodiscard]] executor& device() const { return device_; }

  // What the level between sends through; null: nothing any more.
  [[nodiscard]] transport* attach(transport* network);
  void set_unreachable_handler(collective::unreachable_handler handler) { unreachable_ = std::move(handler); }
  void close();
  void enter(const std::shared_ptr<level_member>& who);
  void leave(const std::shared_ptr<level_member>& who);
  void tell_end(const level_member& who);

  void on_message(incarnation_id from, std::span<const std::byte> payload) override;
  std::span<std::byte> on_bulk_announced(incarnation_id from, const bulk_announcement& what) override;
  void on_bulk_received(incarnation_id from, std::uint64_t transfer, expected<void> result) override;
  void on_path_lost(incarnation_id from, const error& cause) override;
  void on_path_interrupted(incarnation_id from, const error& cause) override;
  void on_undelivered(incarnation_id to, std::span<const std::byte> payload, const error& cause) override;

private:
  // The network as the level between sees it.
  class share final : public transport {
  public:
    explicit share(level_hub& hub)
        : hub_{hub} {}
    void set_listener(transport_listener* listener) override { hub_.between_ = listener; }
    [[nodiscard]] peer_address local_address() const override { return hub_.network_->local_address(); }
    [[nodiscard]] incarnation_id self() const override { return hub_.network_->self(); }
    expected<void> connect(incarnation_id peer, const peer_address& address) override {
      return hub_.network_->connect(peer, address);
    }
    expected<void> send(incarnation_id peer, std::span<const std::byte> payload) override {
      return hub_.network_->send(peer, payload);
    }
    expected<void> send_urgent(incarnation_id peer, std::span<const std::byte> payload) override {
      return hub_.network_->send_urgent(peer, payload);
    }
    expected<void> send_owed(incarnation_id peer, std::span<const std::byte> payload) override {
      return hub_.network_->send_owed(peer, payload);
    }
    void send_bulk(incarnation_id peer, std::uint64_t transfer, std::span<const std::byte> bytes,
                   bulk_done done) override {
      hub_.network_->send_bulk(peer, transfer, bytes, std::move(done));
    }
    void close(incarnation_id peer) override { hub_.network_->close(peer); }
    void drop(incarnation_id peer) override { hub_.network_->drop(peer); }

  private:
    level_hub& hub_;
  };

  struct heard {
    std::uint64_t generation{0};
    std::optional<std::string> place; // as of `here`
    std::optional<level_frame> ended;
  };
  void hear(incarnation_id from, const level_frame& frame);
  void remember(incarnation_id from, const level_frame& frame);
  void on_here(std::uint32_t rank, std::string_view place);
  void on_ended(const level_frame& frame);
  void say(const level_member& who, std::uint32_t rank, level_word what);
  [[nodiscard]] std::optional<std::uint32_t> neighbour(incarnation_id who) const; // its rank

  executor& loop_;
  executor& device_;
  collective& inside_; // used on the device only
  share share_;
  transport* network_{nullptr};
  transport_listener* between_{nullptr};
  collective::unreachable_handler unreachable_;
  std::shared_ptr<level_member> newest_;
  bool left_{false};
  std::uint64_t entered_{0}; // the newest generation
  bool placed_{false};       // its level inside is on its way, or there
  std::map<incarnation_id, heard> heard_;
};

} // namespace troupe

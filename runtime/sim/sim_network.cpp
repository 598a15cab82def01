#include "runtime/sim/sim_transport.hpp"

#include <algorithm>

#include "runtime/base/counter_rng.hpp"

namespace troupe {

std::unique_ptr<transport> sim_network::make_transport(sim_process& owner, incarnation_id self) {
  return std::make_unique<sim_transport>(*this, owner, self);
}

duration sim_network::delay() {
  return world_.draw_between(settings_.delay_min, settings_.delay_max);
}

duration sim_network::delay(const sim_process& from, const sim_process& to) {
  const auto now = world_.now();
  return world_.hosts().departure(from.host(), to.host(), now) - now + delay();
}

void sim_network::deliver(incarnation_id from, incarnation_id to, task work) {
  const auto place = ends_.find(to);
  if (place == ends_.end() || !place->second.owner->alive()) return;
  const auto takes = delay(*ends_.at(from).owner, *place->second.owner);
  auto& last = last_delivery_[{from, to}];
  last = std::max(last + duration{1}, world_.now() + takes); // order of the pair
  world_.schedule(last - world_.now(), &place->second.owner->loop, std::move(work));
}

sim_transport* sim_network::find(incarnation_id who) {
  const auto place = ends_.find(who);
  return place == ends_.end() || !place->second.owner->alive() ? nullptr : place->second.transport;
}

void sim_network::lost(incarnation_id who, const process_exit& how) {
  for (auto& [id, place] : ends_) {
    if (place.transport != nullptr && place.transport->knows(who))
      place.transport->notice_loss(who, errc::path_lost, how.text());
  }
}

void sim_network::fail_path(const sim_process& of, const sim_process& to, const std::string& cause) {
  for (const auto& [id, place] : ends_) {
    if (place.owner != &to) continue;
    for (const auto& [other, end] : ends_) {
      if (end.owner == &of && end.transport != nullptr && end.transport->knows(id))
        end.transport->notice_loss(id, errc::path_lost, cause);
    }
  }
}

void sim_network::part(const sim_process& one, const sim_process& other, duration length) {
  const auto until = world_.now() + length;
  for (const auto& [id, place] : ends_) {
    for (const auto& [far, end] : ends_) {
      const bool meant =
          (place.owner == &one && end.owner == &other) || (place.owner == &other && end.owner == &one);
      if (meant) parted_[{id, far}] = until;
    }
  }
  fail_path(one, other, "they are parted");
  fail_path(other, one, "they are parted");
}

bool sim_network::parted(incarnation_id one, incarnation_id other) const {
  const auto found = parted_.find({one, other});
  return found != parted_.end() && world_.now() < found->second;
}

std::vector<std::int64_t> sim_network::sending_bulk() const {
  std::vector<std::int64_t> pids;
  for (const auto& [id, place] : ends_)
    if (place.owner->alive() && place.transport != nullptr && place.transport->sends_bulk())
      pids.push_back(place.owner->pid());
  return pids;
}

// --- rendezvous -----------------------------------------------------------------------------------------

// Nobody listens in here: equal on both sides, and another one for another job, is all that is needed.
path_secret secret_in_simulation(job_id job) {
  path_secret::key key{};
  const counter_rng numbers{job.high(), job.low()};
  for (std::size_t at = 0; at < key.size(); ++at)
    key[at] = static_cast<std::byte>(numbers.bits(at) & 0xffU);
  return path_secret{key};
}

class sim_rendezvous_server final : public rendezvous_server {
public:
  sim_rendezvous_server(sim_network& network, sim_process& owner, std::string endpoint)
      : network_{network}
      , owner_{owner}
      , endpoint_{std::move(endpoint)} {}
  ~sim_rendezvous_server() override { stop(); }
  expected<void> start(admit decide) override {
    if (endpoint_.ends_with(":0")) {
      endpoint_.pop_back();
      endpoint_ += std::to_string(network_.next_port_++);
    }
    if (!network_.servers_.emplace(endpoint_, this).second)
      return error{errc::bad_argument, endpoint_ + ": address in use"};
    decide_ = std::move(decide);
    return {};
  }
  [[nodiscard]] std::string endpoint() const override { return endpoint_; }
  [[nodiscard]] path_secret secret_of(job_id job) const override { return secret_in_simulation(job); }
  void stop() override {
    const auto found = network_.servers_.find(endpoint_);
    if (found != network_.servers_.end() && found->second == this) network_.servers_.erase(found);
  }

private:
  friend class sim_rendezvous_client;
  sim_network& network_;
  sim_process& owner_;
  std::string endpoint_;
  admit decide_;
};

// Tries again where nobody listens, or where a listener went silent; a try that was given up is not answered
// any more, as a closed connection would not be.
class sim_rendezvous_client final : public rendezvous_client {
public:
  sim_rendezvous_client(sim_network& network, sim_process& owner)
      : network_{network}
      , owner_{owner} {}

  void join(const std::string& endpoint, const join_offer& offer, duration deadline, joined done) override {
    auto request = std::make_shared<joining>(joining{endpoint, offer, std::move(done)});
    owner_.clock.call_after(deadline, [request] {
      finish(*request, error{errc::timed_out, request->endpoint + ": nobody answered in time"});
    });
    attempt(network_, owner_, request);
  }

private:
  static constexpr auto retry = std::chrono::milliseconds{250};
  struct joining {
    std::string endpoint;
    join_offer offer;
    joined done;
    std::uint64_t tries{0};
    bool over{false};
  };
  using joining_ptr = std::shared_ptr<joining>;

  static void finish(joining& request, const expected<join_answer>& result) {
    if (std::exchange(request.over, true)) return; // SN-2
    auto done = std::move(request.done);
    done(result);
  }

  static void attempt(sim_network& net, sim_process& joiner, const joining_ptr& request) {
    if (request->over) return;
    const auto number = ++request->tries;
    const auto server = net.servers_.find(request->endpoint);
    if (server != net.servers_.end()) {
      net.world_.schedule(net.delay(joiner, server->second->owner_), &server->second->owner_.loop,
                          [&net, &joiner, request, number] { answer(net, joiner, request, number); });
    }
    joiner.clock.call_after(retry, [&net, &joiner, request] { attempt(net, joiner, request); });
  }

  // In the server's process.
  static void answer(sim_network& net, sim_process& joiner, const joining_ptr& request,
                     std::uint64_t number) {
    const auto server = net.servers_.find(request->endpoint);
    if (server == net.servers_.end() || !joiner.alive() || request->tries != number) return;
    auto result = std::make_shared<expected<join_answer>>(server->second->decide_(request->offer));
    if (!server->second->owner_.alive()) return;
    if (*result) (*result)->secret = server->second->secret_of((*result)->job);
    net.world_.schedule(net.delay(server->second->owner_, joiner), &joiner.loop,
                        [request, result] { finish(*request, *result); });
  }

  sim_network& network_;
  sim_process& owner_;
};

std::unique_ptr<rendezvous_server> sim_network::make_server(sim_process& owner, std::string endpoint) {
  return std::make_unique<sim_rendezvous_server>(*this, owner, std::move(endpoint));
}
std::unique_ptr<rendezvous_client> sim_network::make_client(sim_process& owner) {
  return std::make_unique<sim_rendezvous_client>(*this, owner);
}

} // namespace troupe

#include "tests/unit/nccl/gpu_worlds.hpp"

#include <array>
#include <atomic>
#include <csignal>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "runtime/host/event_loop.hpp"
#include "runtime/host/host_clock.hpp"
#include "runtime/host/thread_executor.hpp"
#include "runtime/policy/canonical_plan.hpp"
#include "tests/support/posted_communicator.hpp"
#include "tests/unit/collective/world_processes.hpp"
#include "transports/nccl/limits.hpp"
#include "transports/nccl/loaded_gpu.hpp"
#include "transports/nccl/nccl_collective.hpp"

namespace troupe::worlds {

// --- one process ---

struct gpu_process::state {
  explicit state(gpu_world_settings from)
      : settings{std::move(from)} {}
  ~state() {
    owner.finish();
    loop.stop();
    if (looping.joinable()) looping.join();
  }

  gpu_world_settings settings;
  std::optional<loaded_gpu> gpu;
  event_loop loop;
  host_clock clock{loop};
  std::thread looping;
  thread_executor owner{"troupe-gpu"};
  std::shared_ptr<gpu_device> device;
};

namespace {

// A member whose memory is the host's, called from any thread.
class staged_member final : public communicator {
public:
  staged_member(gpu& calls, executor& owner, std::unique_ptr<communicator> inner,
                const collective_shape& shape, rank_id rank, bool sums_of_host,
                std::atomic<std::uint64_t>* arrivals)
      : calls_{calls}
      , copies_{!sums_of_host}
      , owner_{owner}
      , inner_{std::move(inner)}
      , world_{shape.world}
      , rank_{rank.value()}
      , arrivals_{arrivals}
      , sum_(shape.elements) {
    if (auto* group = inner_->group()) group_ = std::make_unique<test::posted_group>(owner_, *group);
    const auto range = shard_range(shape.shards, shape.world, rank_);
    staged_.resize(owned_nodes(shape.shards, range.first, range.count).size(), sum_);
  }
  ~staged_member() override {
    test::on(owner_, [this] { inner_.reset(); });
  }

  [[nodiscard]] std::span<float> contribution(std::size_t index) override {
    return copies_ ? staged_[index] : inner_->contribution(index);
  }
  void begin(element_range part, part_done /*done*/) override {
    test::on(owner_, [&] { inner_->begin(part, {}); });
  }
  void all_reduce(all_reduce_done done) override {
    if (arrivals_ != nullptr) arrivals_[rank_].fetch_add(1);
    done(test::answer_from<expected<reduction>>(owner_, [&](auto answer) {
      for (std::size_t i = 0; copies_ && i < staged_.size(); ++i)
        (void)calls_.copy(inner_->contribution(i).data(), staged_[i].data(), bytes());
      inner_->all_reduce([&, answer](expected<reduction> made) {
        if (made && copies_) {
          (void)calls_.copy(sum_.data(), made->sum.data(), bytes());
          made = reduction{sum_, made->number};
        }
        answer(std::move(made));
      });
    }));
  }
  void abort() noexcept override { inner_->abort(); }
  [[nodiscard]] std::vector<std::uint64_t> arrivals() const override {
    if (arrivals_ == nullptr) return {};
    return {arrivals_, arrivals_ + world_};
  }
  // What a call names is memory of the host as it is: the device copies from and to it.
  [[nodiscard]] rank_group* group() override { return group_.get(); }

private:
  [[nodiscard]] std::size_t bytes() const { return sum_.size() * sizeof(float); }
  gpu& calls_;
  const bool copies_;
  executor& owner_;
  std::unique_ptr<communicator> inner_;
  std::uint32_t world_;
  std::uint32_t rank_;
  std::atomic<std::uint64_t>* arrivals_;
  std::vector<float> sum_;
  std::vector<std::vector<float>> staged_;
  std::unique_ptr<test::posted_group> group_;
};

} // namespace

gpu_process::gpu_process(const gpu_world_settings& settings)
    : state_{std::make_unique<state>(settings)} {}
gpu_process::~gpu_process() = default;

expected<void> gpu_process::open(std::uint32_t index) {
  auto& s = *state_;
  const auto libraries = gpu_libraries::load(s.settings.libraries, index);
  if (!libraries) return libraries.failure();
  s.gpu.emplace(*libraries);
  expected<void> opened;
  test::on(s.owner, [&] { opened = s.gpu->open(index); });
  if (!opened) return opened;
  s.looping = std::thread{[&s] { s.loop.run(); }};
  s.device = gpu_device::make(*s.gpu,
                              {.owner = s.owner,
                               .loop = s.loop,
                               .clock = s.clock,
                               .spawn = [](task work) { std::thread{std::move(work)}.detach(); },
                               .end_process = [](const std::string&) { ::_exit(ended_itself % 256); }},
                              {.name = "cuda:" + std::to_string(index),
                               .life = s.settings.life,
                               .sums_of_host = s.settings.sums_of_host,
                               .eager_looks = 50});
  return {};
}

std::shared_ptr<gpu_device> gpu_process::device() const {
  return state_->device;
}

void gpu_process::on_owner(const std::function<void(gpu& calls)>& work) {
  test::on(state_->owner, [&] { work(*state_->gpu); });
}

expected<std::unique_ptr<communicator>> gpu_process::connect(const std::string& descriptor,
                                                             const collective_shape& shape, rank_id rank,
                                                             std::atomic<std::uint64_t>* arrivals) {
  auto& s = *state_;
  std::optional<expected<std::unique_ptr<communicator>>> made;
  test::on(s.owner, [&] {
    made.emplace(nccl_collective{*s.gpu, s.device}.connect(descriptor, shape, rank));
  });
  if (!*made) return made->failure();
  return std::unique_ptr<communicator>{std::make_unique<staged_member>(
      *s.gpu, s.owner, std::move(made->value()), shape, rank, s.settings.sums_of_host, arrivals)};
}

bool gpu_process::settled() const {
  return eventually([this] { return state_->device->state() == life_state::none; });
}

// --- the director ---

gpu_director::gpu_director(const gpu_library_names& libraries) {
  invariant(::pipe(asks_) == 0 && ::pipe(answers_) == 0, "test: a pipe can be made");
  pid_ = ::fork();
  ::close(pid_ == 0 ? asks_[1] : asks_[0]); // so that either side sees the other's end
  ::close(pid_ == 0 ? answers_[0] : answers_[1]);
  if (pid_ != 0) return;
  const auto loaded = gpu_libraries::load_nccl(libraries);
  std::optional<loaded_gpu> calls;
  if (loaded) calls.emplace(*loaded);
  collective_shape shape;
  while (::read(asks_[0], &shape, sizeof shape) == sizeof shape) {
    std::array<char, limits::nccl_descriptor_bytes_max + 1> text{};
    if (calls)
      if (const auto made = nccl_collective{*calls}.prepare(shape)) made->copy(text.data(), text.size() - 1);
    if (::write(answers_[1], text.data(), text.size()) < 0) break;
  }
  ::_exit(0);
}

gpu_director::~gpu_director() {
  ::close(asks_[1]);
  ::close(answers_[0]);
  ::kill(pid_, SIGKILL);
  ::waitpid(pid_, nullptr, 0);
}

std::string gpu_director::prepare(const collective_shape& shape) {
  std::array<char, limits::nccl_descriptor_bytes_max + 1> text{};
  if (::write(asks_[1], &shape, sizeof shape) != sizeof shape) return {};
  if (::read(answers_[0], text.data(), text.size()) != static_cast<ssize_t>(text.size())) return {};
  return text.data();
}

// --- the world ---

namespace {

class gpu_world final : public world {
public:
  explicit gpu_world(gpu_world_settings settings)
      : settings_{std::move(settings)} {}
  [[nodiscard]] std::string name() const override { return settings_.name; }
  [[nodiscard]] bool splits_nobody() const override { return false; } // NS-2

  [[nodiscard]] std::vector<int> run(const collective_shape& shape, const body& work) override {
    gpu_director director{settings_.libraries};
    const auto descriptor = director.prepare(shape);
    if (descriptor.empty()) return {not_connected};
    line here{shape.world};
    return run_processes(shape.world,
                         [&](std::uint32_t rank) { return run_rank(descriptor, shape, rank, work, here); });
  }

private:
  struct shared_words {
    std::array<std::atomic<std::uint64_t>, gpu_world_ranks_max> arrivals{};
    std::atomic<std::uint32_t> aborted{0};
  };
  // What the ranks of one run share. An abort reaches each of them as a byte, as a director's word does.
  struct line {
    explicit line(std::uint32_t count)
        : start{count}
        , world{count} {
      invariant(::pipe(pulls) == 0, "test: a pipe can be made");
    }
    ~line() {
      ::close(pulls[0]);
      ::close(pulls[1]);
    }
    line(const line&) = delete;
    line& operator=(const line&) = delete;
    void pull() {
      if (words->aborted.exchange(1) != 0) return;
      const std::vector<char> bytes(world);
      invariant(::write(pulls[1], bytes.data(), bytes.size()) > 0, "test: the abort can be told");
    }
    start_line start;
    std::uint32_t world;
    shared_object<shared_words> words;
    int pulls[2]{};
  };

  // A call whose end is that of the generation at this rank ends it for all.
  class announced_group final : public rank_group {
  public:
    announced_group(rank_group& inner, const gpu_device& device, line& here)
        : inner_{&inner}
        , device_{device}
        , line_{here} {}
    announced_group(std::unique_ptr<rank_group> inner, const gpu_device& device, line& here)
        : owned_{std::move(inner)}
        , inner_{owned_.get()}
        , device_{device}
        , line_{here} {}
    [[nodiscard]] std::uint32_t rank() const override { return inner_->rank(); }
    [[nodiscard]] std::uint32_t world() const override { return inner_->world(); }
    void start(const group_operation& what, group_done done) override {
      inner_->start(what, [this, done = &done](expected<void> result) { // it blocks
        if (!result && device_.state() != life_state::ready) line_.pull();
        (*done)(std::move(result));
      });
    }
    [[nodiscard]] expected<std::unique_ptr<rank_group>> split(std::span<const std::uint32_t> ranks) override {
      auto made = inner_->split(ranks);
      if (!made || *made == nullptr) return made;
      return std::unique_ptr<rank_group>{std::make_unique<announced_group>(std::move(*made), device_, line_)};
    }

  private:
    std::unique_ptr<rank_group> owned_;
    rank_group* inner_;
    const gpu_device& device_;
    line& line_;
  };

  class announced_member final : public communicator {
  public:
    announced_member(communicator& inner, const gpu_device& device, line& here)
        : inner_{inner}
        , line_{here} {
      if (auto* group = inner_.group()) group_.emplace(*group, device, here);
    }
    [[nodiscard]] std::span<float> contribution(std::size_t index) override {
      return inner_.contribution(index);
    }
    void begin(element_range part, part_done done) override { inner_.begin(part, std::move(done)); }
    void all_reduce(all_reduce_done done) override { inner_.all_reduce(std::move(done)); }
    void abort() noexcept override {
      inner_.abort(); // at once where it is called
      line_.pull();
    }
    [[nodiscard]] rank_group* group() override { return group_ ? &*group_ : nullptr; }
    [[nodiscard]] std::vector<std::uint64_t> arrivals() const override { return inner_.arrivals(); }

  private:
    communicator& inner_;
    line& line_;
    std::optional<announced_group> group_;
  };

  int run_rank(const std::string& descriptor, const collective_shape& shape, std::uint32_t rank,
               const body& work, line& here) {
    auto& process = *new gpu_process{settings_}; // as long as the forked process: an abort may come late
    if (!process.open(rank)) return not_loaded;
    auto inner = process.connect(descriptor, shape, rank_id{rank}, here.words->arrivals.data());
    if (!inner) return not_connected;
    std::thread{[device = process.device(), generation = shape.generation, end = here.pulls[0]] {
      char byte = 0;
      if (::read(end, &byte, 1) == 1) device->abort(generation, "the generation was ended");
    }}.detach(); // ends with the process
    if (!here.start.wait()) return deadline_passed;
    announced_member member{**inner, *process.device(), here};
    const int result = work(member, rank);
    if (result != passed) here.pull(); // nobody waits for a rank that gave up
    inner->reset();
    return process.settled() ? result : not_settled;
  }

  gpu_world_settings settings_;
};

} // namespace

std::unique_ptr<world> gpu_processes(gpu_world_settings settings) {
  return std::make_unique<gpu_world>(std::move(settings));
}

} // namespace troupe::worlds

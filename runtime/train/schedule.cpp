#include "runtime/train/schedule.hpp"

#include <cmath>

#include "runtime/train/exact_text.hpp"
#include "runtime/train/flat_math.hpp"

namespace troupe {

namespace {

bool is_rate(float value) {
  return std::isfinite(value) && value >= 0;
}

error bad(const char* setting, const char* accepted) {
  return {errc::bad_argument, std::string{"learning rate: "} + setting + " must be " + accepted};
}

struct validator {
  expected<void> operator()(const constant& s) const {
    if (!is_rate(s.rate)) return bad("rate", "a finite number, at least 0");
    return {};
  }
  expected<void> operator()(const cosine& s) const {
    if (!is_rate(s.peak)) return bad("peak", "a finite number, at least 0");
    if (!is_rate(s.floor) || s.floor > s.peak) return bad("floor", "between 0 and peak");
    return {};
  }
  expected<void> operator()(const step_decay& s) const {
    if (!is_rate(s.start)) return bad("start", "a finite number, at least 0");
    if (!is_rate(s.factor)) return bad("factor", "a finite number, at least 0");
    if (s.every_steps == 0) return bad("every_steps", "at least 1");
    return {};
  }
};

struct evaluator {
  std::uint64_t step;

  float operator()(const constant& s) const { return s.rate; }
  float operator()(const cosine& s) const {
    if (step < s.warmup_steps) {
      const double part = static_cast<double>(step + 1) / static_cast<double>(s.warmup_steps);
      return static_cast<float>(part * double{s.peak});
    }
    if (step >= s.total_steps) return s.floor;
    const double part =
        static_cast<double>(step - s.warmup_steps) / static_cast<double>(s.total_steps - s.warmup_steps);
    const double height = double{s.peak} - double{s.floor};
    return static_cast<float>(double{s.floor} + height * 0.5 * (1.0 + cos_pi(part)));
  }
  float operator()(const step_decay& s) const {
    return static_cast<float>(double{s.start} * power(double{s.factor}, step / s.every_steps));
  }
};

struct writer {
  std::string operator()(const constant& s) const { return "constant(rate=" + exact(s.rate) + ")"; }
  std::string operator()(const cosine& s) const {
    return "cosine(peak=" + exact(s.peak) + ",warmup_steps=" + std::to_string(s.warmup_steps) +
           ",floor=" + exact(s.floor) + ",total_steps=" + std::to_string(s.total_steps) + ")";
  }
  std::string operator()(const step_decay& s) const {
    return "step_decay(start=" + exact(s.start) + ",factor=" + exact(s.factor) +
           ",every_steps=" + std::to_string(s.every_steps) + ")";
  }
};

} // namespace

expected<void> validate(const learning_rate& schedule) {
  return std::visit(validator{}, schedule);
}

learning_rate resolved(learning_rate schedule, std::uint64_t steps_total) {
  if (auto* s = std::get_if<cosine>(&schedule); s != nullptr && s->total_steps == 0)
    s->total_steps = steps_total;
  return schedule;
}

float rate_at(const learning_rate& schedule, std::uint64_t step) {
  return std::visit(evaluator{step}, schedule);
}

std::string text_of(const learning_rate& schedule) {
  return std::visit(writer{}, schedule);
}

} // namespace troupe

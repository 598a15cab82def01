// Where telemetry's text goes: a file or terminal (runtime/host/text_writer.hpp), or memory in simulation.
#pragma once

#include <string>
#include <string_view>

namespace troupe {

class text_sink {
public:
  virtual ~text_sink() = default;
  // Takes `text` whole and in order, or drops it whole; never blocks.
  virtual void write(std::string_view text) = 0;
};

class memory_text_sink final : public text_sink {
public:
  void write(std::string_view text) override { text_ += text; }
  [[nodiscard]] const std::string& text() const { return text_; }
  void clear() { text_.clear(); }

private:
  std::string text_;
};

} // namespace troupe

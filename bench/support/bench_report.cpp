#include "bench/support/bench_report.hpp"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <thread>

#include "bench/support/quantiles.hpp"

namespace troupe::bench {
namespace {

struct cell {
  std::string column;
  std::string text;
  bool number{false};
};

// Four significant digits, and whole numbers whole.
std::string number_text(double value) {
  char text[64];
  const auto size = std::fabs(value);
  const int decimals = size >= 1000 || value == std::floor(value) ? 0 : size >= 100 ? 1 : size >= 10 ? 2 : 3;
  std::snprintf(text, sizeof text, "%.*f", decimals, value);
  return text;
}

cell cell_of(const std::string& column, const row& value) {
  if (value.is_null()) return {column, "-", true};
  if (value.is_boolean()) return {column, value.get<bool>() ? "yes" : "no", false};
  if (value.is_number_integer()) return {column, std::to_string(value.get<std::int64_t>()), true};
  if (value.is_number()) return {column, number_text(value.get<double>()), true};
  return {column, value.is_string() ? value.get<std::string>() : value.dump(), false};
}

void flatten(const std::string& prefix, const row& object, std::vector<cell>& into) {
  for (const auto& [name, value] : object.items()) {
    const auto column = prefix.empty() ? name : prefix + " " + name;
    if (value.is_object())
      flatten(column, value, into);
    else
      into.push_back(cell_of(column, value));
  }
}

std::string processor_name() {
  std::ifstream file{"/proc/cpuinfo"};
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("model name")) return line.substr(std::min(line.find(':') + 2, line.size()));
  }
  return "unknown";
}

double memory_gib() {
  std::ifstream file{"/proc/meminfo"};
  std::string name;
  double kib = 0;
  file >> name >> kib;
  return std::round(kib / 1024 / 1024 * 10) / 10;
}

} // namespace

row p50_p99(const std::vector<double>& values) {
  if (values.empty()) return {{"p50", nullptr}, {"p99", nullptr}};
  return {{"p50", quantile(values, 0.5)}, {"p99", quantile(values, 0.99)}};
}

row machine_now() {
  double load[1]{};
  const bool known = ::getloadavg(load, 1) == 1;
  return {{"cores", std::thread::hardware_concurrency()},
          {"processor", processor_name()},
          {"memory_gib", memory_gib()},
          {"load", known ? row(load[0]) : row()}};
}

std::string to_json(const bench_report& what, const row& machine) {
  row checks = row::array();
  for (const auto& one : what.checks)
    checks.push_back({{"name", one.name},
                      {"value", one.value},
                      {one.at_least ? "at_least" : "at_most", one.bound},
                      {"unit", one.unit},
                      {"good", one.good()}});
  row out{{"bench", what.bench}, {"machine", machine}, {"rows", what.rows}, {"checks", checks}};
  for (const auto& one : what.ratios)
    out["ratios"].push_back({{"name", one.name}, {"value", one.value}, {"aim", one.aim}});
  out["notes"] = what.notes;
  return out.dump(2, ' ', false, row::error_handler_t::replace);
}

std::string table(const std::vector<row>& rows) {
  std::vector<std::vector<cell>> lines(rows.size());
  std::vector<std::string> columns;
  for (std::size_t i = 0; i < rows.size(); ++i) {
    flatten("", rows[i], lines[i]);
    for (const auto& one : lines[i])
      if (std::ranges::find(columns, one.column) == columns.end()) columns.push_back(one.column);
  }
  std::vector<std::string> out(rows.size() + 1);
  for (const auto& column : columns) {
    std::vector<cell> cells{{column, column, false}};
    for (const auto& line : lines) {
      const auto found = std::ranges::find(line, column, &cell::column);
      cells.push_back(found == line.end() ? cell{column, "-", true} : *found);
    }
    const bool right = cells.size() > 1 &&
                       std::all_of(cells.begin() + 1, cells.end(), [](const cell& c) { return c.number; });
    const auto width = std::ranges::max(cells, {}, [](const cell& c) { return c.text.size(); }).text.size();
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string padding(width - cells[i].text.size(), ' ');
      if (!out[i].empty()) out[i] += "  ";
      out[i] += right ? padding + cells[i].text : cells[i].text + padding;
    }
  }
  std::string text;
  for (auto& line : out) {
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + "\n";
  }
  return text;
}

std::string to_text(const bench_report& what, const row& machine) {
  std::string text = table(what.rows) + "\n";
  for (const auto& one : what.checks)
    text += std::string{one.good() ? "ok    " : "MISS  "} + one.name + ": " + number_text(one.value) +
            one.unit + (one.at_least ? ", at least " : ", at most ") + number_text(one.bound) + one.unit +
            "\n";
  for (const auto& one : what.ratios)
    text += "ratio " + one.name + ": " + number_text(one.value) +
            (one.aim.empty() ? "" : " (aim: " + one.aim + ")") + "\n";
  for (const auto& note : what.notes)
    text += "note  " + note + "\n";
  text += "machine: " + std::to_string(machine.value("cores", 0)) + " cores, load " +
          (machine.at("load").is_null() ? "unknown" : number_text(machine.at("load").get<double>())) +
          " at the start\n";
  return text;
}

} // namespace troupe::bench

// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/trace/traits.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>
#include <utility>
#include <vector>

#include "plimsoll/base/error.h"
#include "plimsoll/base/parse.h"

namespace plimsoll::trace {
namespace {

using Json = nlohmann::json;

/// Reads the traits of one op.
class Reader {
 public:
  Reader(const std::string& source, std::int64_t line, const std::string& op)
      : source_(source), line_(line), op_(op) {}

  OpTraits Read(const Json& json) const {
    if (!json.is_object()) {
      Fail(fmt::format("are {}; expected an object such as {{\"replayable\": true}}",
                       Quote(json.dump())));
    }
    OpTraits traits;
    for (const auto& [key, value] : json.items()) {
      if (key == "replayable") {
        traits.replayable = ReadBool(key, value);
      } else if (key == "random") {
        traits.random = ReadBool(key, value);
      } else if (key == "state_reads") {
        traits.state_reads = ReadOperands(value);
      } else {
        Fail(
            fmt::format("have the key {}; there are \"replayable\", \"random\" and "
                        "\"state_reads\"",
                        Quote(key)));
      }
    }
    if (traits.random && !traits.replayable) {
      Fail(
          "say \"random\" but not \"replayable\"; \"random\" says how to run it again: say both, "
          "or neither if it must not");
    }
    return traits;
  }

 private:
  [[noreturn]] void Fail(const std::string& reason) const {
    throw InputError(source_, line_, fmt::format("the traits of the op {} {}", Quote(op_), reason));
  }

  bool ReadBool(const std::string& key, const Json& value) const {
    if (!value.is_boolean()) {
      Fail(fmt::format("have {} for {}; expected true or false", Quote(value.dump()), Quote(key)));
    }
    return value.get<bool>();
  }

  std::uint32_t ReadOperands(const Json& value) const {
    if (!value.is_array()) {
      Fail(
          fmt::format("have {} for \"state_reads\"; expected a list of operands, the first read "
                      "is 0, such as [3, 4]",
                      Quote(value.dump())));
    }
    std::uint32_t bits = 0;
    for (const Json& operand : value) {
      if (!operand.is_number_unsigned() || operand.get<std::uint64_t>() > 31) {
        Fail(
            fmt::format("name the operand {} in \"state_reads\"; expected whole numbers from 0 to "
                        "31, the first read is 0",
                        Quote(operand.dump())));
      }
      const std::uint32_t bit = 1U << operand.get<std::uint32_t>();
      if ((bits & bit) != 0) {
        Fail(fmt::format("name the operand {} twice in \"state_reads\"; leave one out",
                         operand.dump()));
      }
      bits |= bit;
    }
    return bits;
  }

  const std::string& source_;
  const std::int64_t line_;
  const std::string& op_;
};

/// Parses the header; `twice` becomes a key that occurs twice in one object, if any does below
/// "traits". The parser itself would take the last.
Json ParseHeader(std::string_view metadata, std::string* twice) {
  std::vector<std::set<std::string>> open;  // The keys so far of the objects around.
  bool is_traits = false;
  const auto see = [&](int /*depth*/, Json::parse_event_t event, Json& json) {
    if (event == Json::parse_event_t::object_start) open.emplace_back();
    if (event == Json::parse_event_t::object_end) open.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto key = json.get<std::string>();
      if (open.size() == 1) is_traits = key == "traits";
      if (!open.back().insert(key).second && is_traits) *twice = key;
    }
    return true;
  };
  return Json::parse(metadata, see, /*allow_exceptions=*/false);
}

}  // namespace

TraitsByName ReadTraits(std::string_view metadata, const std::string& source, std::int64_t line) {
  TraitsByName traits;
  std::string twice;
  const Json header = ParseHeader(metadata, &twice);
  if (!header.is_object()) return traits;
  if (!twice.empty()) {
    throw InputError(source, line,
                     fmt::format("{} is said twice in \"traits\"; leave one out", Quote(twice)));
  }
  const auto given = header.find("traits");
  if (given == header.end()) return traits;
  if (!given->is_object()) {
    throw InputError(source, line,
                     fmt::format("\"traits\" is {}; expected an object with an entry for each op "
                                 "name, or leave it out",
                                 Quote(given->dump())));
  }
  for (const auto& [op, json] : given->items()) {
    traits.emplace(op, Reader(source, line, op).Read(json));
  }
  return traits;
}

}  // namespace plimsoll::trace

// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <utility>

#include "plimsoll/base/error.h"
#include "plimsoll/chain/model.h"
#include "plimsoll/chain/reader.h"

namespace plimsoll::chain {
namespace {

using testing::HasSubstr;

constexpr const char* kGood = R"({
  "model": "tiny", "batch": 4, "image": 32, "host_link_GBps": {"one_way": 12.2},
  "input_bytes": 100,
  "stages": [{"name": "stem", "forward_ms": 0.5, "backward_ms": 1.25, "output_bytes": 7,
              "kept_bytes": 30, "forward_temp_bytes": 1, "backward_temp_bytes": 2,
              "input_gradient_bytes": 3}]})";

std::string Replaced(const std::string& from, const std::string& to) {
  std::string text = kGood;
  text.replace(text.find(from), from.size(), to);
  return text;
}

std::string Refusal(const std::string& text) {
  try {
    ParseChain(text, "tiny.json");
  } catch (const InputError& error) {
    EXPECT_EQ(error.file(), "tiny.json");
    return error.what();
  }
  return "accepted";
}

TEST(ChainReaderTest, ReadsEveryField) {
  const Chain chain = ParseChain(kGood, "tiny.json");
  EXPECT_EQ(chain.name, "tiny");
  EXPECT_EQ(chain.batch, 4);
  EXPECT_EQ(chain.image, 32);
  EXPECT_EQ(chain.bandwidth_bytes_per_s, 12'200'000'000);
  EXPECT_EQ(chain.input_bytes, 100);
  EXPECT_EQ(chain.output_gradient_bytes, 0);
  ASSERT_EQ(chain.stages.size(), 1U);
  EXPECT_EQ(chain.stages[0], (Stage{"stem", 500'000, 1'250'000, 30, 1, 2, 3, 23}));
}

TEST(ChainReaderTest, DoesWithoutTheOptionalFields) {
  const Chain chain = ParseChain(
      Replaced(R"("batch": 4, "image": 32, "host_link_GBps": {"one_way": 12.2},)", ""), "x");
  EXPECT_EQ(chain.batch, 0);
  EXPECT_EQ(chain.bandwidth_bytes_per_s, 0);
  // Without output_bytes, all that is kept is output.
  EXPECT_EQ(ParseChain(Replaced("output_bytes", "other"), "x").stages[0].inside_bytes, 0);
}

TEST(ChainReaderTest, SaysWhichFieldIsMissing) {
  for (const char* key : {"model", "input_bytes", "stages"}) {
    const std::string message = Refusal(Replaced(key, "other"));
    EXPECT_THAT(message, HasSubstr(std::string("has no \"") + key));
  }
  for (const char* key : {"name", "forward_ms", "backward_ms", "kept_bytes", "forward_temp_bytes",
                          "backward_temp_bytes", "input_gradient_bytes"}) {
    const std::string message = Refusal(Replaced(key, "other"));
    EXPECT_THAT(message, HasSubstr(std::string("stage 0: has no \"") + key));
  }
  EXPECT_THAT(Refusal(Replaced("one_way", "both")), HasSubstr("host_link_GBps: has no \"one_way"));
}

TEST(ChainReaderTest, RefusesValuesThatMakeNoSense) {
  EXPECT_THAT(Refusal(Replaced("12.2", "0")), HasSubstr("bandwidth above zero"));
  EXPECT_THAT(Refusal(Replaced("12.2", "-1")), HasSubstr("must not be negative"));
  EXPECT_THAT(Refusal(Replaced("0.5", "-0.5")), HasSubstr("forward_ms must not be negative"));
  EXPECT_THAT(Refusal(Replaced("0.5", "1e12")), HasSubstr("more than a day"));
  EXPECT_THAT(Refusal(Replaced("0.5", "\"fast\"")), HasSubstr("forward_ms is not a number"));
  EXPECT_THAT(Refusal(Replaced("30", "-30")), HasSubstr("kept_bytes is negative"));
  EXPECT_THAT(Refusal(Replaced("30", "1e99")), HasSubstr("kept_bytes is not an integer"));
  EXPECT_THAT(Refusal(Replaced("30", "18446744073709551615")), HasSubstr("absurd"));
  EXPECT_THAT(Refusal(Replaced("7", "31")), HasSubstr("output_bytes is 31, of kept_bytes 30"));
  EXPECT_THAT(Refusal(Replaced("7", "-7")), HasSubstr("output_bytes is negative"));
  EXPECT_THAT(Refusal(Replaced("\"stem\"", "3")), HasSubstr("name is not a text"));
  EXPECT_THAT(Refusal(R"({"model": "m", "input_bytes": 1, "stages": []})"), HasSubstr("no stages"));
  EXPECT_THAT(Refusal(R"({"model": "m", "input_bytes": 1, "stages": 4})"),
              HasSubstr("stages is not an array"));
  EXPECT_THAT(Refusal(R"({"model": "m", "input_bytes": 1, "stages": [4]})"),
              HasSubstr("stage 0: is not an object"));
  EXPECT_THAT(Refusal("[]"), HasSubstr("is not an object"));
  EXPECT_THAT(Refusal("{"), HasSubstr("is not JSON"));
  EXPECT_THAT(Refusal(""), HasSubstr("is not JSON"));
}

TEST(ChainReaderTest, ReadsTheChainsOfTheRepository) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(PLIMSOLL_DATA_DIR "/chains")) {
    const Chain chain = ReadChain(entry.path().string());
    const Model model = MakeModel(chain, chain.bandwidth_bytes_per_s);
    EXPECT_LT(model.smallest_limit_bytes, model.peak_bytes) << entry.path();
    EXPECT_GT(model.compute_ns, 1'000'000) << entry.path();
    ++files;
  }
  EXPECT_GE(files, 5);
  EXPECT_THROW(std::ignore = ReadChain(PLIMSOLL_DATA_DIR "/chains/none.json"), InputError);
}

}  // namespace
}  // namespace plimsoll::chain

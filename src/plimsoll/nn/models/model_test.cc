// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/nn/models/model.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/lowering.h"
#include "plimsoll/nn/models/small_for_test.h"
#include "plimsoll/nn/null_library.h"
#include "plimsoll/nn/program_for_test.h"
#include "plimsoll/nn/record.h"
#include "plimsoll/trace/period.h"
#include "plimsoll/trace/reader.h"
#include "plimsoll/trace/writer.h"

namespace plimsoll::nn {
namespace {

TEST(ModelTest, ParameterCountsAreTheKnownOnes) {
  const std::map<std::string, std::int64_t> known = {
      {"lenet", 431080},         {"alexnet", 61100840},      {"caffenet", 60965224},
      {"vgg11", 132863336},      {"vgg13", 133047848},       {"vgg16", 138357544},
      {"vgg19", 143667240},      {"googlenet", 6624904},     {"inception-v3", 23834568},
      {"resnet18", 11689512},    {"resnet34", 21797672},     {"resnet50", 25557032},
      {"resnet101", 44549160},   {"resnet152", 60192808},    {"resnet18-cifar", 11173962},
      {"resnet20", 272474},      {"wrn28-10", 36479194},     {"densenet121", 7978856},
      {"densenet169", 14149480}, {"densenet201", 20013928},  {"unet", 31037698},
      {"gpt2-small", 124439808}, {"gpt2-medium", 354823168}, {"gpt2-large", 774030080},
      {"gpt2-xl", 1557611200},
  };
  for (const auto& [name, count] : known) {
    EXPECT_EQ(TrainedParameterCount(FindModel(name).build({})), count) << name;
  }
}

TEST(ModelTest, EverySmallInstanceIsHonest) {
  for (const Model& model : ListModels()) {
    SCOPED_TRACE(model.name);
    const Network network = model.build(SmallOptions(model));
    NullLibrary library;
    for (const bool train : {true, false}) {
      ExpectHonest(Lower(network, {.batch = 2, .train = train}, &library));
    }
    ExpectHonest(Lower(network, {.batch = 2, .early_updates = false}, &library));
  }
}

TEST(ModelTest, EveryModelBuildsAtItsOwnSize) {
  for (const Model& model : ListModels()) {
    SCOPED_TRACE(model.name);
    NullLibrary library;
    const Network network = model.build({});
    EXPECT_EQ(network.name, model.name);
    const Program program = Lower(network, {.batch = model.batch}, &library);
    const ProgramBytes bytes = Measure(program);
    EXPECT_GT(bytes.kept, 0);
    EXPECT_GE(bytes.peak, bytes.persistent + bytes.kept);
  }
}

TEST(ModelTest, TracesOfModelsRepeatAndReadBack) {
  for (const char* name : {"lenet", "resnet20", "unet", "gpt2-tiny"}) {
    SCOPED_TRACE(name);
    const Model model = FindModel(name);
    const Network network = model.build(SmallOptions(model));
    NullLibrary library;
    const trace::Trace trace = Record(network, {.batch = 2}, &library);
    EXPECT_EQ(trace.iteration_marks.size(), 3U);
    const trace::Trace read = trace::ParseTrace(trace::FormatTrace(trace), name);
    EXPECT_EQ(read.events.size(), trace.events.size());
    const std::optional<trace::Period> period = trace::FindPeriod(trace);
    ASSERT_TRUE(period.has_value());
    EXPECT_EQ(period->length, trace.iteration_marks[1]);
    EXPECT_EQ(period->iterations(), 3);
  }
}

TEST(ModelTest, TenThousandLayersTakeSeconds) {
  const Network network = FindModel("resnet10001").build({});
  NullLibrary library;
  const trace::Trace trace = Record(network, {.batch = 32}, &library);
  EXPECT_GT(trace.ops.size(), 3 * 100'000U);
}

TEST(ModelTest, FamiliesHaveAnyDepth) {
  for (const char* name : {"resnet302", "resnet695", "resnet1172", "resnet26-cifar", "resnet1202",
                           "preresnet29", "wrn-16-2", "wrn8-256", "sd-resnet56"}) {
    EXPECT_EQ(FindModel(name).name, name);
  }
  // 1001 = 3 * 333 + 2, of which the third stage has all but 14 blocks.
  const Network network = FindModel("resnet1001").build({});
  std::int64_t convs = 0;
  for (const Layer& layer : network.layers) convs += layer.kind == LayerKind::kConv ? 1 : 0;
  EXPECT_EQ(convs, 333 * 3 + 1 + 4);
}

void ExpectRefused(const std::string& name, const std::string& what) {
  try {
    FindModel(name);
    ADD_FAILURE() << name << " was found";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), testing::HasSubstr(what));
  }
}

TEST(ModelTest, UnknownNamesAreToldNearOnes) {
  ExpectRefused("resnet5O", "near it are resnet");
  ExpectRefused("alexnt", "near it are alexnet");
  ExpectRefused("", "no model is called");
  ExpectRefused("vgg12", "no VGG has 12 layers");
  ExpectRefused("resnet51", "no ResNet has 51 layers");
  ExpectRefused("preresnet100", "expected 9 n + 2");
  ExpectRefused("wrn28", "no model is called");
  ExpectRefused("wrn27-1", "expected 6 n + 4");
  ExpectRefused("densenet100", "there are densenet121");
}

}  // namespace
}  // namespace plimsoll::nn

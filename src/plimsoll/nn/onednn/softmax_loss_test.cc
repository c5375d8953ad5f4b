// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/run_for_test.h"

namespace plimsoll::nn::onednn {
namespace {

struct Case {
  Shape logits;
  bool ignored;  ///< Some labels are negative.
};

class SoftmaxLossTest : public testing::TestWithParam<Case> {
 protected:
  SoftmaxLossTest() {
    TestRandom random(5);
    for (std::int64_t i = 0; i < rows_; ++i) {
      const bool ignored = GetParam().ignored && i % 3 == 1;
      values_.push_back(static_cast<std::int32_t>(ignored ? -1 : random.Between(0, classes_ - 1)));
    }
    labels_ = Ints(Shape(GetParam().logits.begin(), GetParam().logits.end() - 1));
    label_data_ = IntData(values_);
  }

  const Tensor logits_ = Floats(GetParam().logits);
  const std::int64_t classes_ = GetParam().logits.back();
  const std::int64_t rows_ = Count(GetParam().logits) / classes_;
  const Data x_ = RandomFloats(logits_, 1, -4, 4);
  const Tensor one_ = Floats({1});
  std::vector<std::int32_t> values_;
  Tensor labels_;
  Data label_data_;
};

TEST_P(SoftmaxLossTest, AgreesWithLoopsAndDifferences) {
  const OpSpec forward{OpKind::kSoftmaxLossForward, {logits_, labels_}, {logits_, one_}, {}};
  const std::vector<Data> reads = {x_, label_data_};
  const auto written = RunChecked(forward, reads, {{0, 0}});
  std::vector<double> probabilities;
  double loss = 0;
  double counted = 0;
  double correct = 0;
  for (std::int64_t r = 0; r < rows_; ++r) {
    const auto row = As<float>(x_).subspan(static_cast<std::size_t>(r * classes_),
                                           static_cast<std::size_t>(classes_));
    double sum = 0;
    for (const float x : row) sum += std::exp(static_cast<double>(x));
    for (const float x : row) probabilities.push_back(std::exp(static_cast<double>(x)) / sum);
    const std::int32_t label = values_[static_cast<std::size_t>(r)];
    if (label < 0) continue;
    counted += 1;
    loss += std::log(sum) - static_cast<double>(row[static_cast<std::size_t>(label)]);
    if (std::max_element(row.begin(), row.end()) - row.begin() == label) correct += 1;
  }
  ExpectNear(written[0], probabilities, 1e-6, "probabilities");
  ExpectNear(written[1], {loss / counted}, 1e-5, "loss");
  const auto counts =
      RunChecked({OpKind::kCountCorrect, {logits_, labels_}, {one_}, {}}, {x_, label_data_});
  ExpectNear(counts[0], {correct}, 0, "correct");

  const auto gradient =
      RunChecked({OpKind::kSoftmaxLossBackward, {logits_, labels_}, {logits_}, {}},
                 {written[0], label_data_}, {{0, 0}});
  // The loss of one row, as differences of the mean of many drown in rounding.
  std::vector<double> expected = probabilities;
  for (std::size_t i = 0; i < expected.size(); ++i) {
    const std::int32_t label = values_[i / static_cast<std::size_t>(classes_)];
    if (static_cast<std::int32_t>(i % static_cast<std::size_t>(classes_)) == label) {
      expected[i] -= 1;
    }
    expected[i] = label < 0 ? 0 : expected[i] / counted;
  }
  ExpectNear(gradient[0], expected, 1e-6, "dlogits");
  if (rows_ > 16) return;
  ExpectGradient(
      [&](const std::vector<Data>& moved) {
        return static_cast<double>(As<float>(RunOp(forward, moved)[1])[0]);
      },
      reads, 0, gradient[0], "dlogits", 5e-2F, 2e-2);
}

TEST_P(SoftmaxLossTest, SurvivesLargeLogits) {
  Data x = x_;
  for (float& value : As<float>(x)) value *= 1000;
  const auto written = RunOp({OpKind::kSoftmaxLossForward, {logits_, labels_}, {logits_, one_}, {}},
                             {x, label_data_});
  EXPECT_TRUE(std::isfinite(As<float>(written[1])[0]));
  for (const float p : As<float>(written[0])) ASSERT_TRUE(p >= 0 && p <= 1);
}

INSTANTIATE_TEST_SUITE_P(Cases, SoftmaxLossTest,
                         testing::Values(Case{{1, 2}, false}, Case{{64, 10}, false},
                                         Case{{7, 1000}, true}, Case{{2, 6, 65}, true},
                                         Case{{200, 300}, true}));

TEST(SoftmaxLossLabelTest, RefusesWhatIsNoClass) {
  const OpSpec spec{
      OpKind::kSoftmaxLossForward, {Floats({2, 3}), Ints({2})}, {Floats({2, 3}), Floats({1})}, {}};
  const Data x = RandomFloats(Floats({2, 3}), 1);
  EXPECT_THROW(RunOp(spec, {x, IntData({0, 3})}), Error);
  EXPECT_EQ(As<float>(RunOp(spec, {x, IntData({-1, -1})})[1])[0], 0.0F);
}

}  // namespace
}  // namespace plimsoll::nn::onednn

// SPDX-License-Identifier: Apache-2.0
//
// Attention and LSTM: what runs over sequences.
#include <gtest/gtest.h>

#include "plimsoll/base/error.h"
#include "plimsoll/nn/onednn/run_for_test.h"

namespace plimsoll::nn::onednn {
namespace {

double At(const Data& data, std::int64_t i) { return As<float>(data)[static_cast<std::size_t>(i)]; }

struct AttentionCase {
  std::int64_t sequences, length, heads, width;
  bool causal;
};

class AttentionTest : public testing::TestWithParam<AttentionCase> {
 protected:
  const AttentionCase c_ = GetParam();
  const std::int64_t d_ = c_.heads * c_.width;
  const Tensor qkv_ = Floats({c_.sequences, c_.length, 3 * d_});
  const Tensor y_ = Floats({c_.sequences, c_.length, d_});
  const Tensor log_sum_ = Floats({c_.sequences, c_.heads, c_.length});
  const Attributes attributes_{.heads = c_.heads, .causal = c_.causal};
  const OpSpec forward_{OpKind::kAttentionForward, {qkv_}, {y_, log_sum_}, attributes_};
  const Data data_ = RandomFloats(qkv_, 1, -2, 2);

  double Qkv(std::int64_t n, std::int64_t t, int which, std::int64_t head, std::int64_t i) const {
    return At(data_, (n * c_.length + t) * 3 * d_ + which * d_ + head * c_.width + i);
  }
};

TEST_P(AttentionTest, ForwardIsTheSoftmaxOfScores) {
  const auto written = RunChecked(forward_, {data_});
  std::vector<double> y(static_cast<std::size_t>(y_.count()));
  std::vector<double> log_sums;
  for (std::int64_t n = 0; n < c_.sequences; ++n) {
    for (std::int64_t head = 0; head < c_.heads; ++head) {
      for (std::int64_t t = 0; t < c_.length; ++t) {
        std::vector<double> scores;
        double sum = 0;
        for (std::int64_t s = 0; s < (c_.causal ? t + 1 : c_.length); ++s) {
          double score = 0;
          for (std::int64_t i = 0; i < c_.width; ++i) {
            score += Qkv(n, t, 0, head, i) * Qkv(n, s, 1, head, i);
          }
          scores.push_back(std::exp(score / std::sqrt(static_cast<double>(c_.width))));
          sum += scores.back();
        }
        log_sums.push_back(std::log(sum));
        for (std::size_t s = 0; s < scores.size(); ++s) {
          for (std::int64_t i = 0; i < c_.width; ++i) {
            y[static_cast<std::size_t>((n * c_.length + t) * d_ + head * c_.width + i)] +=
                scores[s] / sum * Qkv(n, static_cast<std::int64_t>(s), 2, head, i);
          }
        }
      }
    }
  }
  ExpectNear(written[0], y, 1e-5, "y");
  ExpectNear(written[1], log_sums, 1e-5, "log_sum");
  const auto plain = RunChecked({OpKind::kAttentionForward, {qkv_}, {y_}, attributes_}, {data_});
  EXPECT_EQ(plain[0], written[0]);
}

TEST_P(AttentionTest, GradientAgreesWithDifferences) {
  const auto written = RunOp(forward_, {data_});
  const Data dy = RandomFloats(y_, 2);
  const auto gradient =
      RunChecked({OpKind::kAttentionBackward, {qkv_, y_, y_, log_sum_}, {qkv_}, attributes_},
                 {data_, written[0], dy, written[1]});
  ExpectGradient(
      [&](const std::vector<Data>& moved) { return Weighted(RunOp(forward_, moved)[0], dy); },
      {data_}, 0, gradient[0], "dqkv", 2e-2F, 2e-2);
}

INSTANTIATE_TEST_SUITE_P(
    Cases, AttentionTest,
    testing::Values(AttentionCase{1, 1, 1, 4, true}, AttentionCase{2, 9, 3, 8, true},
                    AttentionCase{2, 9, 3, 5, false}, AttentionCase{1, 130, 2, 16, true},
                    AttentionCase{3, 64, 1, 32, false}, AttentionCase{1, 100, 2, 64, true}));

struct LstmCase {
  std::int64_t sequences, length, inputs, hidden;
};

class LstmTest : public testing::TestWithParam<LstmCase> {
 protected:
  const LstmCase c_ = GetParam();
  const Tensor x_ = Floats({c_.sequences, c_.length, c_.inputs});
  const Tensor w_input_ = Floats({4 * c_.hidden, c_.inputs});
  const Tensor w_hidden_ = Floats({4 * c_.hidden, c_.hidden});
  const Tensor bias_ = Floats({4 * c_.hidden});
  const Tensor y_ = Floats({c_.sequences, c_.length, c_.hidden});
  const Tensor gates_ = Floats({c_.sequences, c_.length, 4 * c_.hidden});
  const OpSpec forward_{
      OpKind::kLstmForward, {x_, w_input_, w_hidden_, bias_}, {y_, gates_, y_}, {}};
  const std::vector<Data> reads_ = {RandomFloats(x_, 1), RandomFloats(w_input_, 2),
                                    RandomFloats(w_hidden_, 3), RandomFloats(bias_, 4)};
};

double Logistic(double x) { return 1 / (1 + std::exp(-x)); }

TEST_P(LstmTest, ForwardIsThatOfPyTorch) {
  const auto written = RunChecked(forward_, reads_);
  const std::int64_t h = c_.hidden;
  std::vector<double> y(static_cast<std::size_t>(y_.count()));
  for (std::int64_t n = 0; n < c_.sequences; ++n) {
    std::vector<double> state(static_cast<std::size_t>(h));
    std::vector<double> cell(static_cast<std::size_t>(h));
    for (std::int64_t t = 0; t < c_.length; ++t) {
      std::vector<double> gates;
      for (std::int64_t g = 0; g < 4 * h; ++g) {
        double sum = At(reads_[3], g);
        for (std::int64_t i = 0; i < c_.inputs; ++i) {
          sum +=
              At(reads_[0], (n * c_.length + t) * c_.inputs + i) * At(reads_[1], g * c_.inputs + i);
        }
        for (std::int64_t i = 0; i < h; ++i) {
          sum += state[static_cast<std::size_t>(i)] * At(reads_[2], g * h + i);
        }
        gates.push_back(sum);
      }
      for (std::int64_t i = 0; i < h; ++i) {
        const auto at = static_cast<std::size_t>(i);
        const auto size = static_cast<std::size_t>(h);
        cell[at] = Logistic(gates[size + at]) * cell[at] +
                   Logistic(gates[at]) * std::tanh(gates[2 * size + at]);
        state[at] = Logistic(gates[3 * size + at]) * std::tanh(cell[at]);
        y[static_cast<std::size_t>((n * c_.length + t) * h + i)] = state[at];
      }
    }
  }
  ExpectNear(written[0], y, 1e-5, "y");
  const auto plain =
      RunChecked({OpKind::kLstmForward, {x_, w_input_, w_hidden_, bias_}, {y_}, {}}, reads_);
  EXPECT_EQ(plain[0], written[0]);
}

TEST_P(LstmTest, GradientsAgreeWithDifferences) {
  const auto written = RunOp(forward_, reads_);
  const Data dy = RandomFloats(y_, 7);
  const auto gradients =
      RunChecked({OpKind::kLstmBackward,
                  {x_, w_input_, w_hidden_, y_, gates_, y_, y_},
                  {x_, w_input_, w_hidden_, bias_},
                  {}},
                 {reads_[0], reads_[1], reads_[2], written[0], written[1], written[2], dy});
  const auto scalar = [&](const std::vector<Data>& moved) {
    return Weighted(RunOp(forward_, moved)[0], dy);
  };
  for (std::size_t i = 0; i < 4; ++i) {
    ExpectGradient(scalar, reads_, i, gradients[i], "lstm", 1e-2F, 2e-2);
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, LstmTest,
                         testing::Values(LstmCase{1, 1, 3, 2}, LstmCase{2, 5, 7, 9},
                                         LstmCase{4, 3, 16, 32}, LstmCase{1, 12, 5, 17}));

}  // namespace
}  // namespace plimsoll::nn::onednn

// SPDX-License-Identifier: Apache-2.0
//
// The part of `joint` that searches on several threads. They share out the starts; then each goes
// its own way, with another seed, and the best of their plans counts. Where the search gets to, and
// whether that can be placed, is a matter of luck: to share out the heats, too, or to go on from
// what the luckiest has found, turned out to be worse, unless one is far behind (Joint::CatchUp()).
#include <algorithm>
#include <chrono>
#include <future>
#include <limits>
#include <thread>
#include <utility>

#include "plimsoll/planners/joint_internal.h"

namespace plimsoll::planners {
namespace {

/// More than this are not used unless they are asked for.
constexpr unsigned kMostThreads = 8;
/// How often who waits for others asks whether it is to stop.
constexpr std::chrono::milliseconds kTick(10);
/// Of a budget: later than it ends.
constexpr double kNeverWalks = std::numeric_limits<double>::infinity();

std::size_t CountThreads(const PlannerOptions& options) {
  if (options.evaluations > 0) return 1;
  if (options.threads > 0) return static_cast<std::size_t>(options.threads);
  return std::clamp(std::thread::hardware_concurrency(), 1U, kMostThreads);
}

}  // namespace

Joint::Joint(Joint* lead, std::uint64_t seed, double walks_from)
    : options_(lead->options_),
      question_{lead->question_.problem, lead->question_.machine, options_},
      evaluator_(question_),
      search_(lead->search_),
      deadline_(lead->deadline_),
      base_ns_(lead->base_ns_),
      best_(lead->best_),
      placed_(lead->placed_),
      placed_target_(lead->placed_target_),
      ceiling_(lead->ceiling_),
      walks_from_(walks_from),
      made_ns_(lead->made_ns_) {
  search_.set_seed(seed);
  search_.set_in_hurry(Until(1));
  options_.stop = [lead] { return lead->stopped_.load(); };
  options_.on_progress = [lead](Nanoseconds ns) { lead->Note(ns); };
}

void Joint::Engage() {
  const std::size_t threads = CountThreads(options_);
  if (threads == 1 || IsOver()) return;
  callers_stop_ = std::exchange(options_.stop, [this] {
    Report();
    if (callers_stop_ && callers_stop_()) stopped_ = true;
    return stopped_.load();
  });
  callers_on_progress_ = std::exchange(options_.on_progress, [this](Nanoseconds ns) {
    Note(ns);
    Report();
  });
  noted_ns_ = made_ns_;
  reported_ns_ = made_ns_;
  for (std::size_t k = 1; k < threads; ++k) {
    helpers_.emplace_back(new Joint(this, options_.seed + k, k % 2 == 1 ? 0 : kNeverWalks));
  }
  walks_from_ = kNeverWalks;
}

void Joint::Together(const std::function<void(Joint* joint)>& work) {
  // Whoever fails ends the work of all.
  const auto guard = [this](const auto& part) {
    try {
      part();
    } catch (...) {
      stopped_ = true;
      throw;
    }
  };
  std::vector<std::future<void>> others;
  guard([&] {
    for (const std::unique_ptr<Joint>& helper : helpers_) {
      // If there is no thread to be had, it is done when it is waited for.
      others.push_back(std::async([&, joint = helper.get()] { guard([&] { work(joint); }); }));
    }
    work(this);
    for (const std::future<void>& other : others) {
      while (other.wait_for(kTick) == std::future_status::timeout) IsStopped();
    }
  });
  for (std::future<void>& other : others) other.get();
}

void Joint::TakeFromHelpers() {
  for (const std::unique_ptr<Joint>& helper : helpers_) {
    if (helper->made_ns_ >= made_ns_) continue;
    made_ns_ = helper->made_ns_;
    made_ = std::move(helper->made_);
  }
  helpers_.clear();
}

void Joint::Note(Nanoseconds made_ns) {
  Nanoseconds noted = noted_ns_;
  while (made_ns < noted && !noted_ns_.compare_exchange_weak(noted, made_ns)) {
  }
  if (made_ns <= base_ns_) stopped_ = true;
}

void Joint::Report() {
  const Nanoseconds noted = noted_ns_;
  if (noted >= reported_ns_) return;
  reported_ns_ = noted;
  if (callers_on_progress_) callers_on_progress_(noted);
}

}  // namespace plimsoll::planners

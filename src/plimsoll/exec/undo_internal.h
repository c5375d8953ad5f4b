// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <utility>

namespace plimsoll::exec::internal {

/// Runs a function at the end of its scope unless cancelled: what is to be undone if something in
/// between throws. The function must not throw.
template <typename Function>
class Undo {
 public:
  explicit Undo(Function function) : function_(std::move(function)) {}
  ~Undo() {
    if (!cancelled_) function_();
  }
  Undo(const Undo&) = delete;
  Undo& operator=(const Undo&) = delete;

  void Cancel() { cancelled_ = true; }

 private:
  Function function_;
  bool cancelled_ = false;
};

}  // namespace plimsoll::exec::internal

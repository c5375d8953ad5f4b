// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace plimsoll::cli {

/// Takes the first SIGINT (Ctrl-C) as a request to end with what there is; the second one kills as
/// ever. For one scope at a time.
class Interrupt {
 public:
  Interrupt();
  /// Lets SIGINT kill again.
  ~Interrupt();
  Interrupt(const Interrupt&) = delete;
  Interrupt& operator=(const Interrupt&) = delete;

  bool requested() const;
};

}  // namespace plimsoll::cli

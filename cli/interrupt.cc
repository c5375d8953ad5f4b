// SPDX-License-Identifier: Apache-2.0
#include "cli/interrupt.h"

#include <csignal>

namespace plimsoll::cli {
namespace {

volatile std::sig_atomic_t requested_by_signal = 0;

extern "C" void TakeRequest(int /*signal*/) { requested_by_signal = 1; }

void SetAction(void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = static_cast<int>(SA_RESETHAND | SA_RESTART);
  sigemptyset(&action.sa_mask);
  sigaction(SIGINT, &action, nullptr);
}

}  // namespace

Interrupt::Interrupt() {
  requested_by_signal = 0;
  SetAction(&TakeRequest);
}

Interrupt::~Interrupt() { SetAction(SIG_DFL); }

bool Interrupt::requested() const { return requested_by_signal != 0; }

}  // namespace plimsoll::cli

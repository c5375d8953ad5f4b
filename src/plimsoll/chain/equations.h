// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

/// Equations 1 to 10 of paper 002, section 5.2: the idle time of an ordered schedule whose
/// transfers may be interrupted. They are written once for two kinds of numbers: real bytes (the
/// fractional optimum) and whole slots of memory (the dynamic program).
///
/// Forward is followed from its start and backward from its end, both at stage i, so that whatever
/// was decided for x_0 .. x_{i-1} is summed up in four numbers:
///
///      F_0 ─▶ ... F_{i-1} ─▶        memory:  on the device at the end of F_{i-1}
///                            stages i .. n-1 are open
///      B_0 ◀─ ... B_{i-1} ◀─        to_send: still to leave then;
///                                   to_fetch: must come in before B_{i-1} starts
///
/// Times are counted in what the link carries meanwhile, so that everything is in one unit.
namespace plimsoll::chain {

template <typename Number>
struct Terms {
  std::vector<Number> activation;     ///< |x_i|, n + 1 of them.
  std::vector<Number> gradient;       ///< |y_i|, n + 1 of them.
  std::vector<Number> forward_temp;   ///< ex_F.
  std::vector<Number> backward_temp;  ///< ex_B.
  std::vector<Number> forward;        ///< u_F times beta.
  std::vector<Number> backward;       ///< u_B times beta.
  Number limit{};                     ///< M_GPU.

  std::size_t stages() const { return forward.size(); }
};

template <typename Number>
struct Phase {
  Number memory{};    ///< M_F.
  Number to_send{};   ///< Delta_F; negative: how long the link has had nothing to send.
  Number to_fetch{};  ///< Delta_B; negative: how long the link has nothing to fetch.
  Number idle{};      ///< Sum of epsilon_F and epsilon_B so far.
};

template <typename Number>
Phase<Number> FirstPhase(const Terms<Number>& terms) {
  return {terms.activation[0], Number{}, Number{}, Number{}};
}

/// M_B: on the device right before B_{i-1}.
template <typename Number>
Number BackwardMemory(const Terms<Number>& terms, std::size_t i, const Phase<Number>& phase) {
  const Number zero{};
  return terms.gradient[i] + std::max(zero, phase.to_fetch) + phase.memory -
         std::max(zero, phase.to_send);
}

/// Passes stage i, of whose input `amount` is offloaded. Returns nothing if stage i does not fit
/// even after waiting for everything that was to leave.
template <typename Number>
std::optional<Phase<Number>> PassStage(const Terms<Number>& terms, std::size_t i,
                                       const Phase<Number>& phase, Number amount) {
  const Number zero{};
  const Number sending = std::max(zero, phase.to_send);
  const Number fetching = std::max(zero, phase.to_fetch);
  const Number forward_excess =
      phase.memory + terms.forward_temp[i] + terms.activation[i + 1] - terms.limit;
  const Number backward_excess = BackwardMemory(terms, i, phase) + terms.backward_temp[i] +
                                 terms.activation[i + 1] + terms.gradient[i + 1] - terms.limit;
  if (forward_excess > sending || backward_excess > fetching) return std::nullopt;
  const Number forward_wait = std::max(zero, forward_excess);    // Equation 1.
  const Number backward_wait = std::max(zero, backward_excess);  // Equation 6.
  const Number forward_time = forward_wait + terms.forward[i];
  const Number backward_time = backward_wait + terms.backward[i];
  Phase<Number> next;
  next.idle = phase.idle + forward_wait + backward_wait;
  if (amount > zero) {
    next.to_send = sending + amount - forward_time;                           // Equation 2.
    next.to_fetch = amount + std::max(zero, phase.to_fetch - backward_time);  // Equation 7.
  } else {
    next.to_send = phase.to_send - forward_time;     // Equation 4.
    next.to_fetch = phase.to_fetch - backward_time;  // Equation 8.
  }
  // Equations 3 and 5.
  next.memory = phase.memory + terms.activation[i + 1] - std::min(sending + amount, forward_time);
  return next;
}

/// The idle time between F_{n-1} and B_{n-1} (section 5.2.2). `last` is the phase after all stages.
template <typename Number>
Number IdleBetween(const Terms<Number>& terms, const Phase<Number>& last) {
  const Number zero{};
  const bool sends = last.to_send > zero;
  const bool fetches = last.to_fetch > zero;
  if (!sends && !fetches) return zero;
  if (sends && fetches) return last.to_send + last.to_fetch;
  const std::size_t n = terms.stages();
  // Equation 9: sending goes on under the first backward ops, before anything is fetched.
  // Equation 10: fetching begins under the last forward ops, after everything was sent.
  const Number free = sends ? -last.to_fetch : -last.to_send;
  Number idle = std::max(zero, (sends ? last.to_send : last.to_fetch) - free);
  const Number memory = sends ? last.memory : BackwardMemory(terms, n, last) - terms.gradient[n];
  Number past{};  // U_j.
  Number gone{};  // Activations above x_{j+1}.
  for (std::size_t j = n; j-- > 0 && past < free;) {
    const Number needed = sends ? terms.backward_temp[j] + terms.gradient[j] + terms.gradient[j + 1]
                                : terms.forward_temp[j];
    idle = std::max(idle, needed - gone + memory - terms.limit - past);
    past += sends ? terms.backward[j] : terms.forward[j];
    gone += terms.activation[j + 1];
  }
  return idle;
}

}  // namespace plimsoll::chain

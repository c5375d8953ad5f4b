// SPDX-License-Identifier: Apache-2.0
#include "plimsoll/learn/q_network_body_internal.h"

namespace plimsoll::learn {

template class QNetwork<float>;

}  // namespace plimsoll::learn

// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dnnl.hpp>

/// What differs between oneDNN 2 (Debian 12) and oneDNN 3 (Ubuntu 24.04): the latter has no
/// operation descriptors; what was put into them goes straight into the primitive descriptor.
namespace plimsoll::nn::onednn {

/// Describes a primitive from what both versions agree on, in their order.
template <typename Primitive, typename... Arguments>
typename Primitive::primitive_desc DescribeForward(const dnnl::engine& engine,
                                                   const dnnl::primitive_attr& attributes,
                                                   const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments..., attributes};
#else
  return {typename Primitive::desc(arguments...), attributes, engine};
#endif
}

/// The same for backward passes, which ask for the forward pass that they belong to.
template <typename Primitive, typename Forward, typename... Arguments>
typename Primitive::primitive_desc DescribeBackward(const dnnl::engine& engine,
                                                    const dnnl::primitive_attr& attributes,
                                                    const Forward& forward,
                                                    const Arguments&... arguments) {
#if DNNL_VERSION_MAJOR >= 3
  return {engine, arguments..., forward, attributes};
#else
  return {typename Primitive::desc(arguments...), attributes, engine, forward};
#endif
}

}  // namespace plimsoll::nn::onednn

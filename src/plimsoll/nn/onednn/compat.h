// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <dnnl.hpp>

/// What differs between oneDNN 2 (Debian 12) and oneDNN 3 (Ubuntu 24.04): the latter has no
/// operation descriptors; what was put into them goes straight into the primitive descriptor.
namespace plimsoll::nn::onednn {

/// Takes whichever implementation oneDNN offers first.
struct TakeFirst {
  template <typename Description>
  bool operator()(Description& /*description*/) const {
    return true;
  }
};

/// Describes a primitive from what both versions agree on, in their order. `choose(description)`
/// may go on to the next implementation; if it returns false, the first is taken after all. It is
/// called here as oneDNN 2 goes on only as long as operation descriptor and `hint` are alive.
template <typename Primitive, typename Choose, typename... Arguments>
typename Primitive::primitive_desc DescribeForward(const dnnl::engine& engine,
                                                   const dnnl::primitive_attr& attributes,
                                                   const Choose& choose,
                                                   const Arguments&... arguments) {
  using Description = typename Primitive::primitive_desc;
#if DNNL_VERSION_MAJOR >= 3
  const auto make = [&] { return Description(engine, arguments..., attributes); };
#else
  const typename Primitive::desc operation(arguments...);
  const auto make = [&] { return Description(operation, attributes, engine); };
#endif
  Description description = make();
  return choose(description) ? description : make();
}

/// The same for backward passes, which ask for a hint: the forward pass that they belong to.
template <typename Primitive, typename Choose, typename Forward, typename... Arguments>
typename Primitive::primitive_desc DescribeBackward(const dnnl::engine& engine,
                                                    const dnnl::primitive_attr& attributes,
                                                    const Choose& choose, const Forward& hint,
                                                    const Arguments&... arguments) {
  using Description = typename Primitive::primitive_desc;
#if DNNL_VERSION_MAJOR >= 3
  const auto make = [&] { return Description(engine, arguments..., hint, attributes); };
#else
  const typename Primitive::desc operation(arguments...);
  const auto make = [&] { return Description(operation, attributes, engine, hint); };
#endif
  Description description = make();
  return choose(description) ? description : make();
}

}  // namespace plimsoll::nn::onednn

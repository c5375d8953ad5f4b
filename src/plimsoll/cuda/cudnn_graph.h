// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cudnn.h>

#include <cstdint>
#include <initializer_list>
#include <utility>
#include <vector>

#include "plimsoll/cuda/check.h"

/// Descriptors of cuDNN's graph API: a convolution is an operation of a graph, engines can run it,
/// heuristics propose configurations of engines, and a plan is one of them made ready.
namespace plimsoll::cuda {

class Descriptor {
 public:
  explicit Descriptor(cudnnBackendDescriptorType_t type) {
    Check(cudnnBackendCreateDescriptor(type, &descriptor_), "making a descriptor");
  }
  ~Descriptor() {
    if (descriptor_ != nullptr) cudnnBackendDestroyDescriptor(descriptor_);
  }
  Descriptor(Descriptor&& other) noexcept
      : descriptor_(std::exchange(other.descriptor_, nullptr)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(descriptor_, other.descriptor_);
    return *this;
  }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  cudnnBackendDescriptor_t get() const { return descriptor_; }

  template <typename T>
  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnBackendAttributeType_t type,
                  const T* values, std::int64_t count) {
    Check(cudnnBackendSetAttribute(descriptor_, name, type, count, values), "describing an op");
    return *this;
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, std::initializer_list<std::int64_t> values) {
    return Set(name, CUDNN_TYPE_INT64, values.begin(), static_cast<std::int64_t>(values.size()));
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, const Descriptor& value) {
    return Set(name, CUDNN_TYPE_BACKEND_DESCRIPTOR, &value.descriptor_, 1);
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnDataType_t value) {
    return Set(name, CUDNN_TYPE_DATA_TYPE, &value, 1);
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, float value) {
    return Set(name, CUDNN_TYPE_FLOAT, &value, 1);
  }
  Descriptor& Set(cudnnBackendAttributeName_t name, cudnnHandle_t value) {
    return Set(name, CUDNN_TYPE_HANDLE, &value, 1);
  }

  /// Whether cuDNN takes it as it is described.
  [[nodiscard]] bool TryFinalize() const {
    return cudnnBackendFinalize(descriptor_) == CUDNN_STATUS_SUCCESS;
  }
  void Finalize() const { Check(cudnnBackendFinalize(descriptor_), "describing an op"); }

 private:
  cudnnBackendDescriptor_t descriptor_ = nullptr;
};

/// What heuristics propose for a graph of operations, best first; nothing if they know nothing.
std::vector<Descriptor> Propose(const Descriptor& graph, cudnnBackendHeurMode_t mode);

/// What a configuration's engine does to numbers.
struct NumericalNotes {
  bool tensor_cores = false;
  bool rounds_inputs = false;  ///< To less than TF32.
  bool nondeterministic = false;
};
NumericalNotes NotesOf(const Descriptor& config);

}  // namespace plimsoll::cuda

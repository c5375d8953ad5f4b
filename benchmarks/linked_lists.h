// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>
#include <utility>

#include "plimsoll/base/bytes.h"
#include "plimsoll/base/error.h"

namespace plimsoll {

/// CnMem's way to allocate from an arena: singly linked lists of used blocks, latest first, and of
/// free ones, by address; best fit by a scan of all free blocks; a free looks for its block, then
/// for its place. One mutex.
class LinkedLists {
 public:
  /// The arena, which is not touched, begins at `base`.
  LinkedLists(std::uintptr_t base, Bytes capacity_bytes)
      : free_(new Node{base, Size(capacity_bytes)}) {}
  ~LinkedLists() {
    for (Node* list : {used_, free_}) {
      while (list != nullptr) delete std::exchange(list, list->next);
    }
  }
  LinkedLists(const LinkedLists&) = delete;
  LinkedLists& operator=(const LinkedLists&) = delete;

  /// Throws OutOfMemory if no free block is large enough.
  void* Malloc(Bytes size_bytes) {
    const std::uintptr_t size = Size(size_bytes);
    const std::lock_guard<std::mutex> guard(mutex_);
    Node** best = nullptr;
    for (Node** link = &free_; *link != nullptr; link = &(*link)->next) {
      if ((*link)->size >= size && (best == nullptr || (*link)->size < (*best)->size)) best = link;
    }
    if (best == nullptr) throw OutOfMemory(size_bytes, 0, "the lists' arena is too small");
    Node* node = *best;
    if (node->size == size) {
      *best = node->next;
    } else {
      *best = new Node{node->address + size, node->size - size, node->next};
      node->size = size;
    }
    node->next = std::exchange(used_, node);
    return reinterpret_cast<void*>(node->address);
  }

  /// REQUIRES: the block is live.
  void Free(void* block) {
    const auto address = reinterpret_cast<std::uintptr_t>(block);
    const std::lock_guard<std::mutex> guard(mutex_);
    Node** link = &used_;
    while ((*link)->address != address) link = &(*link)->next;
    Node* node = std::exchange(*link, (*link)->next);
    Node* below = nullptr;
    Node* above = free_;
    for (; above != nullptr && above->address < address; above = above->next) below = above;
    if (below != nullptr && below->address + below->size == address) {
      below->size += node->size;
      delete std::exchange(node, below);
    } else {
      (below != nullptr ? below->next : free_) = node;
    }
    node->next = above;
    if (above != nullptr && node->address + node->size == above->address) {
      node->size += above->size;
      node->next = above->next;
      delete above;
    }
  }

  /// What a block takes.
  static std::uintptr_t Size(Bytes size_bytes) {
    return static_cast<std::uintptr_t>(AlignUp(std::max<Bytes>(size_bytes, 1), 512));
  }

 private:
  struct Node {
    std::uintptr_t address;
    std::uintptr_t size;
    Node* next = nullptr;
  };

  std::mutex mutex_;
  Node* used_ = nullptr;
  Node* free_;
};

}  // namespace plimsoll

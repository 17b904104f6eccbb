// SPDX-License-Identifier: Apache-2.0
// What kernels/plan/device.cuh offers on a GPU, here on fibers.
#pragma once

#include <utility>

#include "simt/launch.h"
#include "simt/memory.h"
#include "simt/thread.h"

namespace driftscope::cuda {

template <class T>
using Global = simt::Global<T>;
template <class T>
using Shared = simt::Shared<T>;

template <class T>
Global<T> global_cast(const Global<const void>& pointer) {
  return {static_cast<T*>(const_cast<void*>(pointer.raw())), pointer.buffer()};
}

using LaunchShape = simt::Shape;

template <class... Parameters, class... Arguments>
cudaError_t launch(void (*kernel)(Parameters...), const char* name, const LaunchShape& shape,
                   cudaStream_t stream, Arguments... arguments) {
  return simt::submit(name, shape, stream, [=] { kernel(arguments...); });
}

}  // namespace driftscope::cuda

#define DRIFTSCOPE_UNROLL
#define DRIFTSCOPE_NOINLINE
#define DRIFTSCOPE_SHARED(Type, name, count) \
  static const char name##_site = 0;         \
  const ::simt::Shared<Type> name = ::simt::static_shared<Type>(&name##_site, count)
#define DRIFTSCOPE_DYNAMIC_SHARED(Type, name, byte_offset, count) \
  const ::simt::Shared<Type> name =                               \
      ::simt::dynamic_shared<Type>(byte_offset, static_cast<std::size_t>(count))

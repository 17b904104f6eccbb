// SPDX-License-Identifier: Apache-2.0
// Matmul by cuBLASLt. The library is loaded when it is first asked for, so that the module starts
// without it; its headers give the types only.
#include <cublasLt.h>
#include <dlfcn.h>

#include <cstdio>
#include <memory>

#include "engine/backend/cuda/module/context.h"
#include "kernels/plan/convert_portable.cuh"
#include "kernels/plan/device.cuh"

namespace driftscope {
namespace {

constexpr int kModuleError = -2;

// The functions that are used, by the names of the header.
struct Library {
  void* file = nullptr;
  cublasLtHandle_t handle = nullptr;
  decltype(&cublasLtCreate) create = nullptr;
  decltype(&cublasLtDestroy) destroy = nullptr;
  decltype(&cublasLtGetVersion) version = nullptr;
  decltype(&cublasLtMatmul) matmul = nullptr;
  decltype(&cublasLtMatmulAlgoGetHeuristic) heuristic = nullptr;
  decltype(&cublasLtMatmulAlgoConfigGetAttribute) algorithm_get = nullptr;
  decltype(&cublasLtMatmulDescCreate) description_create = nullptr;
  decltype(&cublasLtMatmulDescDestroy) description_destroy = nullptr;
  decltype(&cublasLtMatmulDescSetAttribute) description_set = nullptr;
  decltype(&cublasLtMatrixLayoutCreate) layout_create = nullptr;
  decltype(&cublasLtMatrixLayoutDestroy) layout_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceCreate) preference_create = nullptr;
  decltype(&cublasLtMatmulPreferenceDestroy) preference_destroy = nullptr;
  decltype(&cublasLtMatmulPreferenceSetAttribute) preference_set = nullptr;

  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  ~Library() {
    if (handle != nullptr) destroy(handle);
    if (file != nullptr) ::dlclose(file);
  }
};

template <class Function>
bool bind(void* file, Function& function, const char* name) {
  function = reinterpret_cast<Function>(::dlsym(file, name));
  return function != nullptr;
}

bool bind_all(Library& library) {
  void* const file = library.file;
  return bind(file, library.create, "cublasLtCreate") &&
         bind(file, library.destroy, "cublasLtDestroy") &&
         bind(file, library.version, "cublasLtGetVersion") &&
         bind(file, library.matmul, "cublasLtMatmul") &&
         bind(file, library.heuristic, "cublasLtMatmulAlgoGetHeuristic") &&
         bind(file, library.algorithm_get, "cublasLtMatmulAlgoConfigGetAttribute") &&
         bind(file, library.description_create, "cublasLtMatmulDescCreate") &&
         bind(file, library.description_destroy, "cublasLtMatmulDescDestroy") &&
         bind(file, library.description_set, "cublasLtMatmulDescSetAttribute") &&
         bind(file, library.layout_create, "cublasLtMatrixLayoutCreate") &&
         bind(file, library.layout_destroy, "cublasLtMatrixLayoutDestroy") &&
         bind(file, library.preference_create, "cublasLtMatmulPreferenceCreate") &&
         bind(file, library.preference_destroy, "cublasLtMatmulPreferenceDestroy") &&
         bind(file, library.preference_set, "cublasLtMatmulPreferenceSetAttribute");
}

int fail(CudaMessage* message, const char* text, const char* detail) {
  std::snprintf(message->text, sizeof message->text, "%s%s", text, detail);
  return kModuleError;
}

int open_library(CudaContext* context, CudaMessage* message) {
  if (context->vendor != nullptr) return 0;
  auto library = std::make_unique<Library>();
  char name[32];
  std::snprintf(name, sizeof name, "libcublasLt.so.%d", CUBLAS_VER_MAJOR);
  library->file = ::dlopen(name, RTLD_NOW | RTLD_LOCAL);
  if (library->file == nullptr) {
    return fail(message, "matmul_policy vendor needs cuBLAS; install it, or use another policy: ",
                ::dlerror());
  }
  if (!bind_all(*library)) {
    return fail(message, "this cuBLAS lacks a function that is needed: ", name);
  }
  if (library->create(&library->handle) != CUBLAS_STATUS_SUCCESS) {
    library->handle = nullptr;
    return fail(message, "cuBLAS does not start on this device", "");
  }
  context->vendor = library.release();
  return 0;
}

cudaDataType_t type_of(Dtype dtype) {
  switch (dtype) {
    case Dtype::f16:
      return CUDA_R_16F;
    case Dtype::bf16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

// Descriptors of one call, freed at its end.
class Plan {
 public:
  explicit Plan(const Library& library) : m_library(library) {}
  Plan(const Plan&) = delete;
  Plan& operator=(const Plan&) = delete;
  ~Plan() {
    if (m_operation != nullptr) m_library.description_destroy(m_operation);
    if (m_weight != nullptr) m_library.layout_destroy(m_weight);
    if (m_x != nullptr) m_library.layout_destroy(m_x);
    if (m_y != nullptr) m_library.layout_destroy(m_y);
    if (m_preference != nullptr) m_library.preference_destroy(m_preference);
  }

  // yᵀ [n, m] = weight · xᵀ in the library's column-major sense.
  cublasStatus_t make(const CudaVendorMatmul& request) {
    const bool tf32 = request.tf32 && request.weight_dtype == Dtype::f32;
    const cublasComputeType_t compute = tf32 ? CUBLAS_COMPUTE_32F_FAST_TF32 : CUBLAS_COMPUTE_32F;
    const cudaDataType_t type = type_of(request.weight_dtype);
    const cublasOperation_t transposed = CUBLAS_OP_T;
    const auto m = static_cast<uint64_t>(request.m);
    const auto n = static_cast<uint64_t>(request.n);
    const auto k = static_cast<uint64_t>(request.k);
    cublasStatus_t status = m_library.description_create(&m_operation, compute, CUDA_R_32F);
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = m_library.description_set(m_operation, CUBLASLT_MATMUL_DESC_TRANSA, &transposed,
                                         sizeof transposed);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = m_library.layout_create(&m_weight, type, k, n, request.k);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = m_library.layout_create(&m_x, type, k, m, request.k);
    }
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = m_library.layout_create(&m_y, CUDA_R_32F, n, m, request.n);
    }
    return status == CUBLAS_STATUS_SUCCESS ? prefer(request) : status;
  }

  // The proposal that was asked for, best first.
  cublasStatus_t choose(int choice, cublasLtMatmulHeuristicResult_t& chosen) const {
    constexpr int kMost = 64;
    cublasLtMatmulHeuristicResult_t proposals[kMost] = {};
    int count = 0;
    const int wanted = choice + 1 < kMost ? choice + 1 : kMost;
    const cublasStatus_t status =
        m_library.heuristic(m_library.handle, m_operation, m_weight, m_x, m_y, m_y, m_preference,
                            wanted, proposals, &count);
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    if (choice >= count) return CUBLAS_STATUS_NOT_SUPPORTED;
    chosen = proposals[choice];
    return chosen.state;
  }

  cublasStatus_t run(const CudaVendorMatmul& request, const void* x,
                     const cublasLtMatmulHeuristicResult_t& chosen, cudaStream_t stream) const {
    const float one = 1.0F;
    const float zero = 0.0F;
    return m_library.matmul(m_library.handle, m_operation, &one, request.weight, m_weight, x, m_x,
                            &zero, request.y, m_y, request.y, m_y, &chosen.algo, request.workspace,
                            request.workspace_bytes, stream);
  }

 private:
  cublasStatus_t prefer(const CudaVendorMatmul& request) {
    cublasStatus_t status = m_library.preference_create(&m_preference);
    if (status == CUBLAS_STATUS_SUCCESS) {
      status = m_library.preference_set(m_preference, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES,
                                        &request.workspace_bytes, sizeof request.workspace_bytes);
    }
    if (status != CUBLAS_STATUS_SUCCESS) return status;
    // Where split-K sums meet: in the output's type (f32 here), in the compute type, or in place.
    const uint32_t schemes = request.reduced_precision_reduction
                                 ? CUBLASLT_REDUCTION_SCHEME_MASK
                                 : CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    return m_library.preference_set(m_preference, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK,
                                    &schemes, sizeof schemes);
  }

  const Library& m_library;
  cublasLtMatmulDesc_t m_operation = nullptr;
  cublasLtMatrixLayout_t m_weight = nullptr;
  cublasLtMatrixLayout_t m_x = nullptr;
  cublasLtMatrixLayout_t m_y = nullptr;
  cublasLtMatmulPreference_t m_preference = nullptr;
};

int attribute(const Library& library, const cublasLtMatmulAlgo_t& algorithm,
              cublasLtMatmulAlgoConfigAttributes_t which) {
  int value = 0;
  std::size_t written = 0;
  const auto status = library.algorithm_get(&algorithm, which, &value, sizeof value, &written);
  return status == CUBLAS_STATUS_SUCCESS ? value : -1;
}

void describe(const Library& library, const cublasLtMatmulHeuristicResult_t& chosen,
              CudaVendorAlgorithm* result) {
  const cublasLtMatmulAlgo_t& algorithm = chosen.algo;
  *result = {
      .id = attribute(library, algorithm, CUBLASLT_ALGO_CONFIG_ID),
      .tile = attribute(library, algorithm, CUBLASLT_ALGO_CONFIG_TILE_ID),
      .stages = attribute(library, algorithm, CUBLASLT_ALGO_CONFIG_STAGES_ID),
      .split_k = attribute(library, algorithm, CUBLASLT_ALGO_CONFIG_SPLITK_NUM),
      .reduction_scheme = attribute(library, algorithm, CUBLASLT_ALGO_CONFIG_REDUCTION_SCHEME),
      .swizzle = attribute(library, algorithm, CUBLASLT_ALGO_CONFIG_CTA_SWIZZLING),
      .workspace_bytes = chosen.workspaceSize,
      .library_version = library.version()};
}

// y[i, j] = round(y[i, j] + bias[j])
__global__ void add_bias(float* y, const float* bias, std::int64_t count, std::int64_t width,
                         Dtype dtype) {
  for (std::int64_t i = cuda::thread_number(); i < count; i += cuda::threads_in_grid()) {
    const float value = bias == nullptr ? y[i] : __fadd_rn(y[i], bias[i % width]);
    y[i] = exact::with_canonical_nan(exact::rounded(dtype, value));
  }
}

}  // namespace

int vendor_matmul(CudaContext* context, int stream_number, const CudaVendorMatmul* request,
                  CudaVendorAlgorithm* algorithm, CudaMessage* message) {
  if (const int status = check_usable(*context, message); status != 0) return status;
  if (const int status = open_library(context, message); status != 0) return status;
  const Library& library = *static_cast<const Library*>(context->vendor);
  const cudaStream_t stream =
      context->streams[static_cast<std::size_t>(stream_number) % context->streams.size()];
  const void* x = request->x;
  if (request->weight_dtype != Dtype::f32) {
    const DeviceNarrow narrow{request->x, request->narrowed, request->m * request->k,
                              request->weight_dtype};
    const cudaError_t error = cuda::launch_narrow(narrow, stream);
    if (const int status = report(context, error, "narrowing", message); status != 0) return status;
    x = request->narrowed;
  }
  Plan plan(library);
  cublasLtMatmulHeuristicResult_t chosen{};
  cublasStatus_t status = plan.make(*request);
  if (status == CUBLAS_STATUS_SUCCESS) status = plan.choose(request->choice, chosen);
  if (status == CUBLAS_STATUS_SUCCESS) status = plan.run(*request, x, chosen, stream);
  if (status != CUBLAS_STATUS_SUCCESS) {
    std::snprintf(message->text, sizeof message->text,
                  "cuBLAS matmul m=%lld n=%lld k=%lld, proposal %d: status %d",
                  static_cast<long long>(request->m), static_cast<long long>(request->n),
                  static_cast<long long>(request->k), request->choice, static_cast<int>(status));
    return kModuleError;
  }
  describe(library, chosen, algorithm);
  const std::int64_t count = request->m * request->n;
  const cudaError_t error =
      cuda::launch(add_bias, "add_bias", cuda::element_shape(count), stream, request->y,
                   request->bias, count, request->n, request->output_dtype);
  return report(context, error, "bias", message);
}

void release_vendor(void* handle) { delete static_cast<Library*>(handle); }

}  // namespace driftscope

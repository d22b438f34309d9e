// A product in half precision by CUTLASS, D = A B: the schedule is chosen by macros (benchmarks/cutlass.py).
#include <cstdio>
#include <cuda_runtime.h>
#include <cutlass/cutlass.h>
#include <cutlass/epilogue/collective/collective_builder.hpp>
#include <cutlass/gemm/collective/collective_builder.hpp>
#include <cutlass/gemm/device/gemm_universal_adapter.h>
#include <cutlass/gemm/kernel/gemm_universal.hpp>
#include <cutlass/util/packed_stride.hpp>

using namespace cute;
using Half = cutlass::half_t;
using Row = cutlass::layout::RowMajor;
using Column = cutlass::layout::ColumnMajor;
using CtaTile = Shape<Int<TILE_M>, Int<TILE_N>, _64>;
using Cluster = Shape<Int<CLUSTER>, _1, _1>;
using Epilogue = typename cutlass::epilogue::collective::CollectiveBuilder<
    ARCH, cutlass::arch::OpClassTensorOp, CtaTile, Cluster, cutlass::epilogue::collective::EpilogueTileAuto, float, float,
    Half, Row, 8, Half, Row, 8, cutlass::epilogue::EPILOGUE>::CollectiveOp;
using Mainloop = typename cutlass::gemm::collective::CollectiveBuilder<
    ARCH, cutlass::arch::OpClassTensorOp, Half, Row, 8, Half, Column, 8, float, CtaTile, Cluster,
    cutlass::gemm::collective::StageCountAutoCarveout<sizeof(typename Epilogue::SharedStorage)>,
    cutlass::gemm::SCHEDULE>::CollectiveOp;
using Kernel = cutlass::gemm::kernel::GemmUniversal<Shape<int, int, int, int>, Mainloop, Epilogue>;
using Gemm = cutlass::gemm::device::GemmUniversalAdapter<Kernel>;

int main() {
  int m = 256, n = 256, k = 512;  // two tiles for each CTA where the schedule is persistent
  Half *a, *b, *c, *d;
  void* workspace = nullptr;
  cudaMalloc(&a, sizeof(Half) * m * k);
  cudaMalloc(&b, sizeof(Half) * n * k);
  cudaMalloc(&c, sizeof(Half) * m * n);
  cudaMalloc(&d, sizeof(Half) * m * n);
  auto by_a = cutlass::make_cute_packed_stride(typename Kernel::StrideA{}, {m, k, 1});
  auto by_b = cutlass::make_cute_packed_stride(typename Kernel::StrideB{}, {n, k, 1});
  auto by_c = cutlass::make_cute_packed_stride(typename Kernel::StrideC{}, {m, n, 1});
  auto by_d = cutlass::make_cute_packed_stride(typename Kernel::StrideD{}, {m, n, 1});
  cutlass::KernelHardwareInfo hardware;
  hardware.sm_count = 4;
  typename Gemm::Arguments arguments{cutlass::gemm::GemmUniversalMode::kGemm, {m, n, k, 1},
                                     {a, by_a, b, by_b}, {{1.f, 0.f}, c, by_c, d, by_d}, hardware};
  size_t size = Gemm::get_workspace_size(arguments);
  if (size) cudaMalloc(&workspace, size);
  Gemm gemm;
  auto status = gemm.initialize(arguments, workspace);
  if (status == cutlass::Status::kSuccess) status = gemm.run();
  std::printf("%s\n", cutlassGetStatusString(status));
  return status == cutlass::Status::kSuccess ? 0 : 1;
}

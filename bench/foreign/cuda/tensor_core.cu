#include <cuda_bf16.h>
#include <mma.h>
// A product of bf16 by nvcuda::wmma: a warp a tile of 16 by 16.
extern "C" __global__ void tensor_core(const __nv_bfloat16 *a, const __nv_bfloat16 *b, float *c, int m, int n, int k) {
  using namespace nvcuda::wmma;
  fragment<matrix_a, 16, 16, 16, __nv_bfloat16, row_major> fa;
  fragment<matrix_b, 16, 16, 16, __nv_bfloat16, row_major> fb;
  fragment<accumulator, 16, 16, 16, float> fc;
  fill_fragment(fc, 0.f);
  for (int i = 0; i < k; i += 16) {
    load_matrix_sync(fa, a + blockIdx.y * 16 * k + i, k);
    load_matrix_sync(fb, b + i * n + blockIdx.x * 16, n);
    mma_sync(fc, fa, fb, fc);
  }
  store_matrix_sync(c + blockIdx.y * 16 * n + blockIdx.x * 16, fc, n, mem_row_major);
}

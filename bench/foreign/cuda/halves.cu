#include <cuda_bf16.h>
#include <cuda_fp16.h>
// Arithmetic of pairs of halves, and sums of bf16 in f32.
extern "C" __global__ void halves(const __half2 *x, const __nv_bfloat162 *y, __half2 *z, float *s, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  __half2 v = x[at];
  z[at] = __hmax2(__hfma2(v, v, __float2half2_rn(0.5f)), __hneg2(v));
  float2 f = __bfloat1622float2(y[at]);
  s[at] = f.x * f.y + (__hgt(__low2half(v), __high2half(v)) ? 1.f : 0.f);
}

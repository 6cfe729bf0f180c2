// Inclusive prefix sums of blocks of 256 by shuffles.
extern "C" __global__ void scan(const int *x, int *z, int n) {
  __shared__ int sums[8];
  int at = blockIdx.x * 256 + threadIdx.x, lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
  int v = at < n ? x[at] : 0;
  for (int d = 1; d < 32; d *= 2) {
    int up = __shfl_up_sync(~0u, v, d);
    if (lane >= d) v += up;
  }
  if (lane == 31) sums[warp] = v;
  __syncthreads();
  if (warp == 0) {
    int s = lane < 8 ? sums[lane] : 0;
    for (int d = 1; d < 8; d *= 2) {
      int up = __shfl_up_sync(~0u, s, d);
      if (lane >= d) s += up;
    }
    if (lane < 8) sums[lane] = s;
  }
  __syncthreads();
  if (warp > 0) v += sums[warp - 1];
  if (at < n) z[at] = v;
}

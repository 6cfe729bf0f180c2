// Sums of rows through a ring of two buffers that cp.async fills.
extern "C" __global__ void async_copy(const float *x, float *z, int columns) {
  __shared__ __align__(16) float ring[2][512];
  const float *row = x + blockIdx.x * columns;
  auto copy = [&](int step) {
    unsigned to = (unsigned)__cvta_generic_to_shared(&ring[step & 1][threadIdx.x * 4]);
    asm volatile("cp.async.cg.shared.global [%0], [%1], 16;" ::"r"(to), "l"(row + step * 512 + threadIdx.x * 4) : "memory");
    asm volatile("cp.async.commit_group;" ::: "memory");
  };
  float sum = 0;
  int steps = columns / 512;
  copy(0);
  for (int i = 0; i < steps; i++) {
    if (i + 1 < steps) copy(i + 1);
    if (i + 1 < steps)
      asm volatile("cp.async.wait_group 1;" ::: "memory");
    else
      asm volatile("cp.async.wait_group 0;" ::: "memory");
    __syncthreads();
    for (int j = 0; j < 4; j++) sum += ring[i & 1][(threadIdx.x + j * 128) % 512];
    __syncthreads();
  }
  for (int d = 16; d; d /= 2) sum += __shfl_xor_sync(~0u, sum, d);
  __shared__ float sums[4];
  if (threadIdx.x % 32 == 0) sums[threadIdx.x / 32] = sum;
  __syncthreads();
  if (threadIdx.x == 0) z[blockIdx.x] = sums[0] + sums[1] + sums[2] + sums[3];
}

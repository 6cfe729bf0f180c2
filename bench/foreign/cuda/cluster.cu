#include <cooperative_groups.h>
// Sums over a cluster through distributed shared memory (sm_90).
extern "C" __global__ void __cluster_dims__(2, 1, 1) cluster(const int *x, int *z) {
#if __CUDA_ARCH__ >= 900
  namespace cg = cooperative_groups;
  __shared__ int sum;
  auto c = cg::this_cluster();
  if (threadIdx.x == 0) sum = 0;
  __syncthreads();
  atomicAdd(&sum, x[blockIdx.x * blockDim.x + threadIdx.x]);
  c.sync();
  int *other = c.map_shared_rank(&sum, c.block_rank() ^ 1);
  if (threadIdx.x == 0) z[blockIdx.x] = sum - *other;
  c.sync();
#endif
}

// Transposes through a padded tile of shared memory.
extern "C" __global__ void transpose(const float *x, float *z, int rows, int columns) {
  __shared__ float tile[32][33];
  int c = blockIdx.x * 32 + threadIdx.x, r0 = blockIdx.y * 32;
  for (int i = threadIdx.y; i < 32; i += 8)
    if (r0 + i < rows && c < columns) tile[i][threadIdx.x] = x[(r0 + i) * columns + c];
  __syncthreads();
  int r = r0 + threadIdx.x, c0 = blockIdx.x * 32;
  for (int i = threadIdx.y; i < 32; i += 8)
    if (c0 + i < columns && r < rows) z[(c0 + i) * rows + r] = tile[threadIdx.x][i];
}

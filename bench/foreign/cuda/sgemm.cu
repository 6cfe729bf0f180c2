// A product of f32 by tiles of 32, two by two elements a thread, double-buffered.
extern "C" __global__ void sgemm(const float *a, const float *b, float *c, int m, int n, int k) {
  __shared__ float sa[2][16][33], sb[2][16][32];
  int t = threadIdx.x, tx = t & 15, ty = t >> 4, r0 = blockIdx.y * 32, c0 = blockIdx.x * 32, p = 0;
  float acc[2][2] = {};
  for (int k0 = 0; k0 < k; k0 += 16, p ^= 1) {
    for (int i = t; i < 512; i += 256) {
      int r = i >> 4, q = i & 15;
      sa[p][q][r] = r0 + r < m && k0 + q < k ? a[(r0 + r) * k + k0 + q] : 0;
      int y = i >> 5, x = i & 31;
      sb[p][y][x] = k0 + y < k && c0 + x < n ? b[(k0 + y) * n + c0 + x] : 0;
    }
    __syncthreads();
#pragma unroll
    for (int q = 0; q < 16; q++)
#pragma unroll
      for (int i = 0; i < 2; i++)
#pragma unroll
        for (int j = 0; j < 2; j++) acc[i][j] += sa[p][q][ty * 2 + i] * sb[p][q][tx * 2 + j];
  }
  for (int i = 0; i < 2; i++)
    for (int j = 0; j < 2; j++)
      if (r0 + ty * 2 + i < m && c0 + tx * 2 + j < n) c[(r0 + ty * 2 + i) * n + c0 + tx * 2 + j] = acc[i][j];
}

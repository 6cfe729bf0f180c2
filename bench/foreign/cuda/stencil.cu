// Five points in two dimensions, with constants.
__constant__ float weight[5] = {0.5f, 0.125f, 0.125f, 0.125f, 0.125f};
extern "C" __global__ void stencil(const float *x, float *z, int h, int w) {
  int c = blockIdx.x * blockDim.x + threadIdx.x, r = blockIdx.y * blockDim.y + threadIdx.y;
  if (r >= h || c >= w) return;
  auto at = [&](int i, int j) { return x[min(max(i, 0), h - 1) * w + min(max(j, 0), w - 1)]; };
  z[r * w + c] = weight[0] * at(r, c) + weight[1] * at(r - 1, c) + weight[2] * at(r + 1, c) + weight[3] * at(r, c - 1) + weight[4] * at(r, c + 1);
}

// One step of a radix sort of 256 words by 4 bits: stable ranks by ballots.
extern "C" __global__ void radix(const unsigned *x, unsigned *z, int shift) {
  __shared__ int count[16][8], start[16][8];
  unsigned v = x[blockIdx.x * 256 + threadIdx.x], digit = v >> shift & 15;
  int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, rank = 0;
  for (int d = 0; d < 16; d++) {
    unsigned same = __ballot_sync(~0u, digit == d);
    if (digit == d) rank = __popc(same & ((1u << lane) - 1));
    if (lane == 0) count[d][warp] = __popc(same);
  }
  __syncthreads();
  if (threadIdx.x == 0) {
    int sum = 0;
    for (int d = 0; d < 16; d++)
      for (int w = 0; w < 8; w++) {
        start[d][w] = sum;
        sum += count[d][w];
      }
  }
  __syncthreads();
  z[blockIdx.x * 256 + start[digit][warp] + rank] = v;
}

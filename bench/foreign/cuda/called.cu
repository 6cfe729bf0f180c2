// A function that is not inlined, called twice, and one that calls itself.
__device__ __noinline__ int mix(int a, int b) { return (a * 31 + b) ^ (a >> 3); }
__device__ __noinline__ int depth(int n) { return n < 2 ? n : depth(n - 1) + depth(n - 2); }
extern "C" __global__ void called(const int *x, int *z, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at < n) z[at] = mix(x[at], mix(at, 7)) + depth(x[at] & 7);
}

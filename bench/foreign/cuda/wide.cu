// Division of 64-bit numbers, carries, funnel shifts and bytes.
extern "C" __global__ void wide(const unsigned long long *x, unsigned long long *z, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  unsigned long long a = x[2 * at], b = x[2 * at + 1];
  unsigned long long q = a / (b | 1), r = a % ((b >> 17) | 1);
  unsigned hi = (unsigned)(a >> 32), lo = (unsigned)a;
  unsigned f = __funnelshift_l(lo, hi, (unsigned)b), p = __byte_perm(hi, lo, 0x5140);
  z[at] = q + r + __umul64hi(a, b) + f + p + (unsigned long long)__vadd4(hi, lo);
}

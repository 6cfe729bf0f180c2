#define __global__ __attribute__((global))
#define __shared__ __attribute__((shared))
#define __device__ __attribute__((device))
#define __constant__ __attribute__((constant))
__device__ inline int tid() { return __nvvm_read_ptx_sreg_tid_x(); }
__device__ inline int bid() { return __nvvm_read_ptx_sreg_ctaid_x(); }
__device__ inline int bdim() { return __nvvm_read_ptx_sreg_ntid_x(); }
extern "C" __global__ void vadd(const float* a, const float* b, float* c, int n) {
  int i = bid() * bdim() + tid();
  if (i < n) c[i] = a[i] + b[i];
}
extern "C" __global__ void transpose(const float* __restrict__ in, float* out, int n) {
  __shared__ float tile[32][33];
  int x = tid(), y = __nvvm_read_ptx_sreg_tid_y();
  int bx = bid() * 32, by = __nvvm_read_ptx_sreg_ctaid_y() * 32;
  for (int j = 0; j < 32; j += 8) tile[y + j][x] = in[(long)(by + y + j) * n + bx + x];
  __syncthreads();
  for (int j = 0; j < 32; j += 8) out[(long)(bx + y + j) * n + by + x] = tile[x][y + j];
}
extern "C" __global__ void sum(const float* in, float* out, int n) {
  float s = 0;
  for (int i = bid() * bdim() + tid(); i < n; i += bdim() * __nvvm_read_ptx_sreg_nctaid_x()) s += in[i];
  for (int d = 16; d; d >>= 1) s += __nvvm_shfl_sync_down_f32(0xffffffffu, s, d, 31);
  if ((tid() & 31) == 0) __nvvm_atom_add_gen_f(out, s);
}
extern "C" __global__ void types(const double* d, const signed char* c, const unsigned short* u, long long* l, _Float16* h, unsigned long long* ull) {
  int i = tid();
  h[i] = (_Float16)(d[i] * c[i]) ;
  l[i] = (long long)c[i] * u[i] / (i + 3) % 7 + (long long)d[i];
  ull[i] = ull[i] / u[i] + (ull[i] >> (i & 63)) + __builtin_popcountll(ull[i]) + __builtin_clz(i|1);
  l[i] += d[i] > 0.5 ? c[i] : u[i];
  switch (i & 3) { case 0: l[i] = 5; break; case 1: ull[i] ^= 0x8000000000000001ull; break; default: d[i] < 3 ? l[i]++ : l[i]--; }
}
__constant__ int table[4] = {1, -2, 3, 4};
__attribute__((device)) unsigned counter;
extern "C" __global__ void waits(unsigned* p, unsigned phase) {
  __shared__ unsigned long long bar;
  unsigned addr = (unsigned)(unsigned long long)(__attribute__((address_space(3))) unsigned long long*)&bar;
  if (tid() == 0) asm volatile("mbarrier.init.shared.b64 [%0], 1;" :: "r"(addr) : "memory");
  __syncthreads();
  for (int k = 0; k < 2; k++)
  asm volatile("{\n.reg .pred P1;\nLAB_WAIT:\nmbarrier.try_wait.parity.shared.b64 P1, [%0], %1;\n@P1 bra DONE;\nbra LAB_WAIT;\nDONE:\n}" :: "r"(addr), "r"(phase + k) : "memory");
  p[tid()] = table[tid() & 3] + counter;
}

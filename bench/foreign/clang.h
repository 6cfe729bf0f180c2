// What the CUDA sources use, for clang without NVIDIA's headers.
#define __global__ __attribute__((global))
#define __device__ __attribute__((device))
#define __shared__ __attribute__((shared))
#define __constant__ __attribute__((constant))
#define __noinline__ __attribute__((noinline))
#define __align__(n) __attribute__((aligned(n)))
#define __cluster_dims__(...)
#define INLINE static inline __attribute__((device, always_inline))
#define AXES(name, sreg)                                                        \
  struct name##_t {                                                             \
    __declspec(property(get = gx)) int x;                                       \
    __declspec(property(get = gy)) int y;                                       \
    __attribute__((device)) int gx() const { return __nvvm_read_ptx_sreg_##sreg##_x(); } \
    __attribute__((device)) int gy() const { return __nvvm_read_ptx_sreg_##sreg##_y(); } \
  };                                                                            \
  static __attribute__((device)) const name##_t name = {};
AXES(threadIdx, tid)
AXES(blockIdx, ctaid)
AXES(blockDim, ntid)
AXES(gridDim, nctaid)
INLINE void __threadfence() { __nvvm_membar_gl(); }
INLINE int __shfl_up_sync(unsigned m, int v, int d) { return __nvvm_shfl_sync_up_i32(m, v, d, 0); }
INLINE float __shfl_xor_sync(unsigned m, float v, int d) { return __nvvm_shfl_sync_bfly_f32(m, v, d, 31); }
INLINE unsigned __ballot_sync(unsigned m, bool p) { return __nvvm_vote_ballot_sync(m, p); }
INLINE int __popc(unsigned v) { return __builtin_popcount(v); }
INLINE int __clz(int v) { return v ? __builtin_clz(v) : 32; }
INLINE unsigned __brev(unsigned v) { return __builtin_bitreverse32(v); }
INLINE int atomicAdd(int *p, int v) { return __nvvm_atom_add_gen_i(p, v); }
INLINE unsigned atomicInc(unsigned *p, unsigned v) { return __nvvm_atom_inc_gen_ui(p, v); }
INLINE int min(int a, int b) { return a < b ? a : b; }
INLINE int max(int a, int b) { return a > b ? a : b; }
INLINE unsigned long long __cvta_generic_to_shared(const void *p) {
  return (unsigned long long)(const __attribute__((address_space(3))) void *)p;
}

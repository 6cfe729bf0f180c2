// A box of a tensor into shared memory by a tensor map, and shared memory as it is out (sm_90).
struct __align__(64) Map {
  char bytes[128];
};
extern "C" __global__ void tensor_copy(const __grid_constant__ Map map, unsigned *z, int column, int row, int words) {
#if __CUDA_ARCH__ >= 900
  __shared__ __align__(1024) unsigned tile[1024];
  __shared__ __align__(8) unsigned long long full;
  unsigned bar = (unsigned)__cvta_generic_to_shared(&full), to = (unsigned)__cvta_generic_to_shared(tile);
  if (threadIdx.x == 0) {
    asm volatile("mbarrier.init.shared::cta.b64 [%0], 1;" ::"r"(bar));
    asm volatile("fence.proxy.async.shared::cta;" ::: "memory");
    asm volatile("mbarrier.arrive.expect_tx.shared::cta.b64 _, [%0], %1;" ::"r"(bar), "r"(words * 4) : "memory");
    asm volatile("cp.async.bulk.tensor.2d.shared::cluster.global.mbarrier::complete_tx::bytes [%0], [%1, {%2, %3}], [%4];" ::"r"(to), "l"(&map), "r"(column), "r"(row), "r"(bar) : "memory");
  }
  __syncthreads();
  asm volatile("{\n.reg .pred p;\nagain:\nmbarrier.try_wait.parity.shared::cta.b64 p, [%0], 0;\n@!p bra again;\n}" ::"r"(bar) : "memory");
  for (int i = threadIdx.x; i < words; i += blockDim.x) z[i] = tile[i];
#endif
}

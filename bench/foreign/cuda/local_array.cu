// Sorts seven words a thread in local memory, and jumps by a switch.
extern "C" __global__ void local_array(const int *x, int *z, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  int v[7];
  for (int i = 0; i < 7; i++) v[i] = x[at * 7 + i];
#pragma unroll 1
  for (int i = 1; i < 7; i++) {
    int t = v[i], j = i;
#pragma unroll 1
    for (; j > 0 && v[j - 1] > t; j--) v[j] = v[j - 1];
    v[j] = t;
  }
  int r;
  switch (v[3] & 7) {
  case 0: r = v[0] * 3; break;
  case 1: r = v[1] / (v[6] | 1); break;
  case 2: r = v[2] ^ v[5]; break;
  case 3: r = v[x[at] & 3]; break;
  case 4: r = v[4] % ((v[5] & 15) + 1); break;
  case 5: r = __popc(v[1]) + __clz(v[2]); break;
  case 6: r = v[6] - v[0]; break;
  default: r = (int)__brev((unsigned)v[3]);
  }
  z[at] = r;
}

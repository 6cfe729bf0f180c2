// Functions of the CUDA mathematics library in f32 and f64.
extern "C" __global__ void functions(const float *x, float *z, const double *u, double *w, int n) {
  int at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= n) return;
  float v = x[at];
  z[at] = sinf(v) + expf(-v * v) + logf(fabsf(v) + 1) + tanhf(v) + erff(v) + powf(fabsf(v), 0.25f) + cbrtf(v) + atan2f(v, 2);
  double d = u[at];
  w[at] = exp(d) + log1p(fabs(d)) + sqrt(fabs(d)) / (1 + d * d) + cos(d);
}

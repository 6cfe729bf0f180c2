// The CBLAS of OpenBLAS, or with -DMKL that of MKL: sgemm M N K (row-major; sgemv
// where M or N is 1), sgemv as gemv M K, gemv_columns M K, gevm N K and gevm_rows N K
// (see ../cases.go), and attention H S D as one would write it without fusion: sgemm,
// softmax, sgemm a head. MKL also has bf16gemm M N K, of bfloat16 to float32.
// Threads: OPENBLAS_NUM_THREADS or MKL_NUM_THREADS, and OMP_NUM_THREADS for the softmax.
#include "protocol.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#ifdef MKL
#include <mkl_cblas.h>
#include <mkl_service.h>
#else
#include <cblas.h>
#ifdef BLAS_SYMBOL_PREFIX // the build for Python has its own names
#define cblas_sgemm scipy_cblas_sgemm
#define cblas_sgemv scipy_cblas_sgemv
#define openblas_get_config scipy_openblas_get_config
#define openblas_get_corename scipy_openblas_get_corename
#endif
#endif

static long m, n, k;
static float *scores;
static void (*op)(void *const *in, void *out);

static void sgemm(void *const *in, void *out) {
  if (m == 1)
    cblas_sgemv(CblasRowMajor, CblasTrans, k, n, 1, in[1], n, in[0], 1, 0, out, 1);
  else if (n == 1)
    cblas_sgemv(CblasRowMajor, CblasNoTrans, m, k, 1, in[0], k, in[1], 1, 0, out, 1);
  else
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, in[0], k, in[1], n, 0, out, n);
}

#ifdef MKL
static void bf16gemm(void *const *in, void *out) {
  cblas_gemm_bf16bf16f32(CblasRowMajor, CblasNoTrans, CblasNoTrans, m, n, k, 1, in[0], k, in[1], n, 0, out, n);
}
#endif

// The loops are what gcc makes vectors of with -ffast-math, exp included (libmvec).
static void softmax(float *x, long rows, long columns) {
#pragma omp parallel for schedule(static)
  for (long r = 0; r < rows; r++) {
    float *row = x + r * columns, most = row[0], sum = 0;
#pragma omp simd reduction(max : most)
    for (long c = 0; c < columns; c++)
      most = row[c] > most ? row[c] : most;
#pragma omp simd reduction(+ : sum)
    for (long c = 0; c < columns; c++)
      sum += row[c] = expf(row[c] - most);
    float scale = 1 / sum;
#pragma omp simd
    for (long c = 0; c < columns; c++)
      row[c] *= scale;
  }
}

static void attention(void *const *in, void *output) {
  float *q = in[0], *keys = in[1], *v = in[2], *out = output;
  long heads = m, s = n, d = k;
  for (long h = 0; h < heads; h++) {
    long at = h * s * d;
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, s, s, d, 1 / sqrtf(d), q + at, d, keys + at, d, 0, scores, s);
    softmax(scores, s, s);
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasNoTrans, s, d, s, 1, scores, s, v + at, d, 0, out + at, d);
  }
}

static int matrix, columns; // of sgemv: which input, and whether its rows are of terms or not

static void sgemv(void *const *in, void *out) {
  float *a = in[matrix], *x = in[1 - matrix];
  if (columns)
    cblas_sgemv(CblasRowMajor, CblasTrans, k, m, 1, a, m, x, 1, 0, out, 1);
  else
    cblas_sgemv(CblasRowMajor, CblasNoTrans, m, k, 1, a, k, x, 1, 0, out, 1);
}

static const struct {
  const char *name;
  int matrix, columns;
} vectors[] = {{"gemv", 0, 0}, {"gemv_columns", 0, 1}, {"gevm", 1, 1}, {"gevm_rows", 1, 0}};

static sizes floats(int n_in, size_t a, size_t b, size_t c, size_t out) {
  size_t f = sizeof(float);
  return (sizes){n_in, {a * f, b * f, c * f}, out * f};
}

const char *prepare(const char *name, const long *dims, int n_dims, sizes *z) {
  for (size_t v = 0; v < sizeof vectors / sizeof *vectors; v++)
    if (!strcmp(name, vectors[v].name) && n_dims == 2) {
      op = sgemv, m = dims[0], k = dims[1], matrix = vectors[v].matrix, columns = vectors[v].columns;
      *z = matrix ? floats(2, k, m * k, 0, m) : floats(2, m * k, k, 0, m);
      return NULL;
    }
  if (n_dims != 3)
    return "not an operation of this driver";
  m = dims[0], n = dims[1], k = dims[2];
  if (!strcmp(name, "sgemm")) {
    op = sgemm;
    *z = floats(2, m * k, k * n, 0, m * n);
    return NULL;
  }
#ifdef MKL
  if (!strcmp(name, "bf16gemm")) {
    op = bf16gemm;
    *z = (sizes){2, {m * k * 2, k * n * 2}, m * n * sizeof(float)};
    return NULL;
  }
#endif
  if (!strcmp(name, "attention")) {
    op = attention;
    *z = floats(3, m * n * k, m * n * k, m * n * k, m * n * k);
    scores = aligned_alloc(4096, (n * n * sizeof(float) + 4095) / 4096 * 4096);
    return scores ? NULL : "out of memory";
  }
  return "not an operation of this driver";
}

void run(void *const *in, void *out) { op(in, out); }

void finish(void) {
  free(scores);
  scores = NULL;
}

const char *version(void) {
  static char text[256];
#ifdef MKL
  mkl_get_version_string(text, sizeof text);
#else
  snprintf(text, sizeof text, "%s, core %s", openblas_get_config(), openblas_get_corename());
#endif
  return text;
}

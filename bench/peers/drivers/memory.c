// The memory's rate: copy N copies N floats by streaming stores, which go past the
// caches; copy_cached N by ordinary ones; read N reads N floats, a cache line at each of four
// places in turn, read_in_order N one line after the other: which is faster differs by
// processor, and prefetch instructions help neither. (Two lines at a place in turn take 1.1
// times as long as either on a Zen 4.)
// Threads: OMP_NUM_THREADS, as the other drivers; they take chunks from one
// counter and the copy is over when all chunks are, so that on a busy machine
// it does not wait for a thread that has no core.
#include "protocol.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { line = 32, places = 4, chunks_a_thread = 8 }; // floats moved in one step; see read
enum { cache_line = 16, turn = places * cache_line };  // floats

#ifdef __AVX__
#include <immintrin.h>
static const char kind[] = "256-bit streaming stores";
static void stream(const float *x, float *y, size_t lines) {
  for (size_t k = 0; k < lines; k++, x += line, y += line) {
    _mm_prefetch((const char *)(x + 256), _MM_HINT_T0);
    _mm_prefetch((const char *)(x + 272), _MM_HINT_T0);
    __m256 a = _mm256_loadu_ps(x), b = _mm256_loadu_ps(x + 8), c = _mm256_loadu_ps(x + 16), d = _mm256_loadu_ps(x + 24);
    _mm256_stream_ps(y, a), _mm256_stream_ps(y + 8, b), _mm256_stream_ps(y + 16, c), _mm256_stream_ps(y + 24, d);
  }
  _mm_sfence();
}
static void store(const float *x, float *y, size_t lines) {
  for (size_t k = 0; k < lines * line; k += 8)
    _mm256_storeu_ps(y + k, _mm256_loadu_ps(x + k));
}
static float fetch(const float *x, size_t n, int ordered) {
  __m256 sums[2 * places] = {_mm256_setzero_ps()};
  size_t turns = n / turn, apart = ordered ? cache_line : turns * cache_line, step = ordered ? turn : cache_line;
  const float *p = x;
  for (size_t k = 0; k < turns; k++, p += step)
#pragma GCC unroll 4 // sums stay in registers
    for (int q = 0; q < places; q++) {
      sums[2 * q] = _mm256_add_ps(sums[2 * q], _mm256_loadu_ps(p + q * apart));
      sums[2 * q + 1] = _mm256_add_ps(sums[2 * q + 1], _mm256_loadu_ps(p + q * apart + 8));
    }
  float sum = 0;
  for (int k = 0; k < 2 * places * 8; k++)
    sum += ((float *)sums)[k];
  for (size_t k = turns * turn; k < n; k++)
    sum += x[k];
  return sum;
}
#else
static const char kind[] = "memcpy: no streaming stores in this build";
static void stream(const float *x, float *y, size_t lines) { memcpy(y, x, lines * line * sizeof(float)); }
static void store(const float *x, float *y, size_t lines) { stream(x, y, lines); }
static float fetch(const float *x, size_t n, int ordered) {
  float sum = 0;
  for (size_t k = 0; k < n; k++)
    sum += x[k];
  return sum;
}
#endif

static size_t n;
static int reading, ordered, cached;
static float sums[1 << 10]; // of the chunks that are read, at most
static const float *from;
static float *to;
static int threads;
static _Atomic int taken, done; // chunks of the copy under way

static void work(void) {
  int all = threads * chunks_a_thread;
  for (int k = atomic_load(&taken); k < all;)
    if (atomic_compare_exchange_weak(&taken, &k, k + 1)) {
      size_t lines = n / line, a = lines * k / all, b = lines * (k + 1) / all;
      if (reading)
        sums[k] = fetch(from + a * line, (b - a) * line, ordered);
      else if (cached)
        store(from + a * line, to + a * line, b - a);
      else
        stream(from + a * line, to + a * line, b - a);
      atomic_fetch_add(&done, 1);
      k = atomic_load(&taken);
    }
}

// Workers never sleep: out of turn the whole process is stopped.
static void *worker(void *unused) {
  for (;;) {
    work();
    sched_yield();
  }
  return unused;
}

static void start_threads(void) {
  const char *text = getenv("OMP_NUM_THREADS");
  threads = text && atoi(text) > 0 ? atoi(text) : 1;
  atomic_store(&taken, threads * chunks_a_thread);
  for (int k = 1; k < threads; k++) {
    pthread_t t;
    if (pthread_create(&t, NULL, worker, NULL))
      exit(1);
  }
}

const char *prepare(const char *op, const long *dims, int n_dims, sizes *z) {
  int in_order = !strcmp(op, "read_in_order"), reads = in_order || !strcmp(op, "read"), caches = !strcmp(op, "copy_cached");
  if ((strcmp(op, "copy") && !reads && !caches) || n_dims != 1)
    return "not an operation of this driver";
  if (!threads)
    start_threads();
  if (threads * chunks_a_thread > (int)(sizeof sums / sizeof sums[0]))
    return "too many threads";
  n = dims[0], reading = reads, ordered = in_order, cached = caches;
  *z = (sizes){1, {n * sizeof(float)}, (reads ? 1 : n) * sizeof(float)};
  return NULL;
}

void run(void *const *in, void *output) {
  float *out = output;
  from = in[0], to = out;
  atomic_store(&done, 0);
  atomic_store(&taken, 0);
  work();
  while (atomic_load(&done) < threads * chunks_a_thread)
    sched_yield();
  size_t rest = n % line;
  if (reading) {
    out[0] = 0;
    for (int k = 0; k < threads * chunks_a_thread; k++)
      out[0] += sums[k];
    for (size_t k = n - rest; k < n; k++)
      out[0] += from[k];
    return;
  }
  memcpy(out + n - rest, from + n - rest, rest * sizeof(float));
}

void finish(void) {}

const char *version(void) { return kind; }

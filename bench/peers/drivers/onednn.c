// oneDNN by its C API, of version 2 or 3:
//
//   layernorm R C    softmax R C    gelu R C     bias_gelu R C   add R C
//   row_sum R C      column_sum R C              (reduction primitive)
//   transpose R C    swap A B C D                (reorder; swap is {0,2,1,3})
//
// gelu is the one by tanh. bias_gelu is a binary addition with gelu as its
// post-op, one primitive. Threads: OMP_NUM_THREADS.
#include "protocol.h"
#include <dnnl.h>
#include <stdio.h>
#include <string.h>

enum { max_args = 4 };

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_primitive_t primitive;
static dnnl_memory_t memory[max_args];
static dnnl_exec_arg_t args[max_args];
static int n_args;
static dnnl_status_t status;

static int ok(dnnl_status_t s) {
  if (s != dnnl_success && status == dnnl_success)
    status = s;
  return s == dnnl_success;
}

#if DNNL_VERSION_MAJOR >= 3
typedef dnnl_memory_desc_t desc;
#define REF(d) (d)
static desc strided(int n, const dnnl_dims_t dims, const dnnl_dims_t strides) {
  desc d = NULL;
  ok(dnnl_memory_desc_create_with_strides(&d, n, dims, dnnl_f32, strides));
  return d;
}
static void drop(desc *d) { dnnl_memory_desc_destroy(*d); }
#else
typedef dnnl_memory_desc_t desc;
#define REF(d) (&(d))
static desc strided(int n, const dnnl_dims_t dims, const dnnl_dims_t strides) {
  desc d;
  ok(dnnl_memory_desc_init_by_strides(&d, n, dims, dnnl_f32, strides));
  return d;
}
static void drop(desc *d) { (void)d; }
#endif

static desc matrix(long rows, long columns) {
  return strided(2, (dnnl_dims_t){rows, columns}, (dnnl_dims_t){columns, 1});
}

static desc vector(long n) { return strided(1, (dnnl_dims_t){n}, (dnnl_dims_t){1}); }

// argument k of run is what arg names; the last one is the output.
static void argument(int arg, desc d) {
  ok(dnnl_memory_create(&memory[n_args], REF(d), engine, DNNL_MEMORY_NONE));
  args[n_args] = (dnnl_exec_arg_t){arg, memory[n_args]};
  n_args++;
}

static void build(dnnl_primitive_desc_t pd) {
  if (status == dnnl_success)
    ok(dnnl_primitive_create(&primitive, pd));
  if (pd)
    dnnl_primitive_desc_destroy(pd);
}

static void layernorm(long r, long c, sizes *z) {
  desc x = matrix(r, c), v = vector(c);
  dnnl_primitive_desc_t pd = NULL;
  unsigned flags = dnnl_use_scale | dnnl_use_shift;
#if DNNL_VERSION_MAJOR >= 3
  ok(dnnl_layer_normalization_forward_primitive_desc_create(&pd, engine, dnnl_forward_inference, x, x, NULL, 1e-5f, flags, NULL));
#else
  dnnl_layer_normalization_desc_t d;
  if (ok(dnnl_layer_normalization_forward_desc_init(&d, dnnl_forward_inference, &x, NULL, 1e-5f, flags)))
    ok(dnnl_primitive_desc_create(&pd, &d, NULL, engine, NULL));
#endif
  build(pd);
  argument(DNNL_ARG_SRC, x);
  argument(DNNL_ARG_SCALE, v);
  argument(DNNL_ARG_SHIFT, v);
  argument(DNNL_ARG_DST, x);
  *z = (sizes){3, {r * c, c, c}, r * c};
  drop(&x), drop(&v);
}

static void softmax(long r, long c, sizes *z) {
  desc x = matrix(r, c);
  dnnl_primitive_desc_t pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
  ok(dnnl_softmax_forward_primitive_desc_create(&pd, engine, dnnl_forward_inference, dnnl_softmax_accurate, x, x, 1, NULL));
#else
  dnnl_softmax_v2_desc_t d;
  if (ok(dnnl_softmax_v2_forward_desc_init(&d, dnnl_forward_inference, dnnl_softmax_accurate, &x, &x, 1)))
    ok(dnnl_primitive_desc_create(&pd, &d, NULL, engine, NULL));
#endif
  build(pd);
  argument(DNNL_ARG_SRC, x);
  argument(DNNL_ARG_DST, x);
  *z = (sizes){1, {r * c}, r * c};
  drop(&x);
}

static void gelu(long r, long c, sizes *z) {
  desc x = matrix(r, c);
  dnnl_primitive_desc_t pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
  ok(dnnl_eltwise_forward_primitive_desc_create(&pd, engine, dnnl_forward_inference, dnnl_eltwise_gelu_tanh, x, x, 0, 0, NULL));
#else
  dnnl_eltwise_desc_t d;
  if (ok(dnnl_eltwise_forward_desc_init(&d, dnnl_forward_inference, dnnl_eltwise_gelu_tanh, &x, 0, 0)))
    ok(dnnl_primitive_desc_create(&pd, &d, NULL, engine, NULL));
#endif
  build(pd);
  argument(DNNL_ARG_SRC, x);
  argument(DNNL_ARG_DST, x);
  *z = (sizes){1, {r * c}, r * c};
  drop(&x);
}

// add is x + y, y a matrix of rows rows, 1 broadcast; with_gelu then gelu of it.
static void add(long r, long c, long rows, int with_gelu, sizes *z) {
  desc x = matrix(r, c), y = matrix(rows, c);
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_attr_t attr = NULL;
  if (with_gelu) {
    dnnl_post_ops_t post;
    ok(dnnl_primitive_attr_create(&attr));
    ok(dnnl_post_ops_create(&post));
#if DNNL_VERSION_MAJOR >= 3
    ok(dnnl_post_ops_append_eltwise(post, dnnl_eltwise_gelu_tanh, 0, 0));
#else
    ok(dnnl_post_ops_append_eltwise(post, 1, dnnl_eltwise_gelu_tanh, 0, 0));
#endif
    ok(dnnl_primitive_attr_set_post_ops(attr, post));
    dnnl_post_ops_destroy(post);
  }
#if DNNL_VERSION_MAJOR >= 3
  ok(dnnl_binary_primitive_desc_create(&pd, engine, dnnl_binary_add, x, y, x, attr));
#else
  dnnl_binary_desc_t d;
  if (ok(dnnl_binary_desc_init(&d, dnnl_binary_add, &x, &y, &x)))
    ok(dnnl_primitive_desc_create(&pd, &d, attr, engine, NULL));
#endif
  build(pd);
  if (attr)
    dnnl_primitive_attr_destroy(attr);
  argument(DNNL_ARG_SRC_0, x);
  argument(DNNL_ARG_SRC_1, y);
  argument(DNNL_ARG_DST, x);
  *z = (sizes){2, {r * c, rows * c}, r * c};
  drop(&x), drop(&y);
}

// sum reduces a matrix to r × c, one of which is 1.
static void sum(long rows, long columns, long r, long c, sizes *z) {
  desc x = matrix(rows, columns), y = matrix(r, c);
  dnnl_primitive_desc_t pd = NULL;
#if DNNL_VERSION_MAJOR >= 3
  ok(dnnl_reduction_primitive_desc_create(&pd, engine, dnnl_reduction_sum, x, y, 0, 0, NULL));
#else
  dnnl_reduction_desc_t d;
  if (ok(dnnl_reduction_desc_init(&d, dnnl_reduction_sum, &x, &y, 0, 0)))
    ok(dnnl_primitive_desc_create(&pd, &d, NULL, engine, NULL));
#endif
  build(pd);
  argument(DNNL_ARG_SRC, x);
  argument(DNNL_ARG_DST, y);
  *z = (sizes){1, {rows * columns}, r * c};
  drop(&x), drop(&y);
}

// reorder copies a dense array to one of the same logical dims and these strides.
static void reorder(int n, const dnnl_dims_t dims, const dnnl_dims_t from, const dnnl_dims_t to, sizes *z) {
  desc x = strided(n, dims, from), y = strided(n, dims, to);
  dnnl_primitive_desc_t pd = NULL;
  ok(dnnl_reorder_primitive_desc_create(&pd, REF(x), engine, REF(y), engine, NULL));
  build(pd);
  argument(DNNL_ARG_FROM, x);
  argument(DNNL_ARG_TO, y);
  size_t all = 1;
  for (int d = 0; d < n; d++)
    all *= dims[d];
  *z = (sizes){1, {all}, all};
  drop(&x), drop(&y);
}

static const char *start(const char *op, const long *d, int n, sizes *z) {
  if (!strcmp(op, "swap") && n == 4)
    reorder(4, (dnnl_dims_t){d[0], d[1], d[2], d[3]}, (dnnl_dims_t){d[1] * d[2] * d[3], d[2] * d[3], d[3], 1},
            (dnnl_dims_t){d[1] * d[2] * d[3], d[3], d[1] * d[3], 1}, z);
  else if (n != 2)
    return "not an operation of this driver with so many dimensions";
  else if (!strcmp(op, "layernorm"))
    layernorm(d[0], d[1], z);
  else if (!strcmp(op, "softmax"))
    softmax(d[0], d[1], z);
  else if (!strcmp(op, "gelu"))
    gelu(d[0], d[1], z);
  else if (!strcmp(op, "bias_gelu"))
    add(d[0], d[1], 1, 1, z);
  else if (!strcmp(op, "add"))
    add(d[0], d[1], d[0], 0, z);
  else if (!strcmp(op, "row_sum"))
    sum(d[0], d[1], d[0], 1, z);
  else if (!strcmp(op, "column_sum"))
    sum(d[0], d[1], 1, d[1], z);
  else if (!strcmp(op, "transpose"))
    reorder(2, (dnnl_dims_t){d[0], d[1]}, (dnnl_dims_t){d[1], 1}, (dnnl_dims_t){1, d[0]}, z);
  else
    return "not an operation of this driver";
  return NULL;
}

const char *prepare(const char *op, const long *dims, int n_dims, sizes *z) {
  static char why[64];
  if (!engine && (dnnl_engine_create(&engine, dnnl_cpu, 0) || dnnl_stream_create(&stream, engine, dnnl_stream_default_flags)))
    return "oneDNN has no CPU engine";
  status = dnnl_success;
  const char *no = start(op, dims, n_dims, z);
  if (!no && status != dnnl_success) {
    snprintf(why, sizeof why, "oneDNN's status is %d", status);
    no = why;
  }
  if (no)
    finish();
  return no;
}

void run(float *const *in, float *out) {
  for (int k = 0; k < n_args; k++)
    dnnl_memory_set_data_handle(memory[k], k < n_args - 1 ? in[k] : out);
  dnnl_primitive_execute(primitive, stream, n_args, args);
  dnnl_stream_wait(stream);
}

void finish(void) {
  for (int k = 0; k < n_args; k++)
    if (memory[k])
      dnnl_memory_destroy(memory[k]);
  memset(memory, 0, sizeof memory);
  n_args = 0;
  if (primitive)
    dnnl_primitive_destroy(primitive);
  primitive = NULL;
}

const char *version(void) {
  static char text[64];
  const dnnl_version_t *v = dnnl_version();
  snprintf(text, sizeof text, "oneDNN %d.%d.%d", v->major, v->minor, v->patch);
  return text;
}

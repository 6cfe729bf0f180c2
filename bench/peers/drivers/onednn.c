// oneDNN by its C API, of version 3:
//
//	layernorm R C    softmax R C    gelu R C     bias_gelu R C   add R C
//	row_sum R C      column_sum R C              (reduction primitive)
//	transpose R C    swap A B C D                (reorder; swap is {0,2,1,3})
//	sgemm M N K      bf16gemm M N K  s8gemm M N K   (matmul to f32, f32 and s32)
//	gemv M K         gemv_columns M K               (matmul; gevm and gevm_rows N K)
//	conv N H W C KERNEL O STRIDE     s8conv of the same
//
// gelu is the one by tanh. bias_gelu is a binary addition with gelu as its post-op, one
// primitive. A convolution is of images N×H×W×C and weights KERNEL×KERNEL×C×O, with
// KERNEL/2 zeros at each side; as in an application the weights are brought once, before
// anything is timed, to the layout that oneDNN asks for. Threads: OMP_NUM_THREADS,
// which is the number of processors that the process may use (oneDNN of PyPI takes its
// threads from SYCL's CPU device).
#define _GNU_SOURCE
#include "protocol.h"
#include <dnnl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { max_args = 4, max_packed = 8 };

typedef dnnl_memory_desc_t desc;

static dnnl_engine_t engine;
static dnnl_stream_t stream;
static dnnl_primitive_t primitive;
static dnnl_memory_t memory[max_args];
static dnnl_exec_arg_t args[max_args];
static int n_args;
static dnnl_status_t status;

// The weights of convolutions: where they were, and in the layout of the primitive.
static struct {
  void *from;
  dnnl_memory_t to;
} packed[max_packed];
static int n_packed;
static desc plain_weights, packed_weights;

static int ok(dnnl_status_t s) {
  if (s != dnnl_success && status == dnnl_success)
    status = s;
  return s == dnnl_success;
}

static desc typed(int n, const dnnl_dims_t dims, dnnl_data_type_t type, const dnnl_dims_t strides) {
  desc d = NULL;
  ok(dnnl_memory_desc_create_with_strides(&d, n, dims, type, strides));
  return d;
}

static desc strided(int n, const dnnl_dims_t dims, const dnnl_dims_t strides) { return typed(n, dims, dnnl_f32, strides); }

static void drop(desc *d) {
  if (*d)
    dnnl_memory_desc_destroy(*d);
  *d = NULL;
}

static desc matrix(long rows, long columns) {
  return strided(2, (dnnl_dims_t){rows, columns}, (dnnl_dims_t){columns, 1});
}

static desc vector(long n) { return strided(1, (dnnl_dims_t){n}, (dnnl_dims_t){1}); }

static sizes floats(int n_in, size_t a, size_t b, size_t c, size_t out) {
  size_t f = sizeof(float);
  return (sizes){n_in, {a * f, b * f, c * f}, out * f};
}

// argument k of run is what arg names; the last one is the output.
static void argument(int arg, desc d) {
  ok(dnnl_memory_create(&memory[n_args], d, engine, DNNL_MEMORY_NONE));
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
  ok(dnnl_layer_normalization_forward_primitive_desc_create(&pd, engine, dnnl_forward_inference, x, x, NULL, 1e-5f, flags, NULL));
  build(pd);
  argument(DNNL_ARG_SRC, x);
  argument(DNNL_ARG_SCALE, v);
  argument(DNNL_ARG_SHIFT, v);
  argument(DNNL_ARG_DST, x);
  *z = floats(3, r * c, c, c, r * c);
  drop(&x), drop(&v);
}

static void softmax(long r, long c, sizes *z) {
  desc x = matrix(r, c);
  dnnl_primitive_desc_t pd = NULL;
  ok(dnnl_softmax_forward_primitive_desc_create(&pd, engine, dnnl_forward_inference, dnnl_softmax_accurate, x, x, 1, NULL));
  build(pd);
  argument(DNNL_ARG_SRC, x);
  argument(DNNL_ARG_DST, x);
  *z = floats(1, r * c, 0, 0, r * c);
  drop(&x);
}

static void gelu(long r, long c, sizes *z) {
  desc x = matrix(r, c);
  dnnl_primitive_desc_t pd = NULL;
  ok(dnnl_eltwise_forward_primitive_desc_create(&pd, engine, dnnl_forward_inference, dnnl_eltwise_gelu_tanh, x, x, 0, 0, NULL));
  build(pd);
  argument(DNNL_ARG_SRC, x);
  argument(DNNL_ARG_DST, x);
  *z = floats(1, r * c, 0, 0, r * c);
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
    ok(dnnl_post_ops_append_eltwise(post, dnnl_eltwise_gelu_tanh, 0, 0));
    ok(dnnl_primitive_attr_set_post_ops(attr, post));
    dnnl_post_ops_destroy(post);
  }
  ok(dnnl_binary_primitive_desc_create(&pd, engine, dnnl_binary_add, x, y, x, attr));
  build(pd);
  if (attr)
    dnnl_primitive_attr_destroy(attr);
  argument(DNNL_ARG_SRC_0, x);
  argument(DNNL_ARG_SRC_1, y);
  argument(DNNL_ARG_DST, x);
  *z = floats(2, r * c, rows * c, 0, r * c);
  drop(&x), drop(&y);
}

// sum reduces a matrix to r × c, one of which is 1.
static void sum(long rows, long columns, long r, long c, sizes *z) {
  desc x = matrix(rows, columns), y = matrix(r, c);
  dnnl_primitive_desc_t pd = NULL;
  ok(dnnl_reduction_primitive_desc_create(&pd, engine, dnnl_reduction_sum, x, y, 0, 0, NULL));
  build(pd);
  argument(DNNL_ARG_SRC, x);
  argument(DNNL_ARG_DST, y);
  *z = floats(1, rows * columns, 0, 0, r * c);
  drop(&x), drop(&y);
}

// reorder copies a dense array to one of the same logical dims and these strides.
static void reorder(int n, const dnnl_dims_t dims, const dnnl_dims_t from, const dnnl_dims_t to, sizes *z) {
  desc x = strided(n, dims, from), y = strided(n, dims, to);
  dnnl_primitive_desc_t pd = NULL;
  ok(dnnl_reorder_primitive_desc_create(&pd, x, engine, y, engine, NULL));
  build(pd);
  argument(DNNL_ARG_FROM, x);
  argument(DNNL_ARG_TO, y);
  size_t all = 1;
  for (int d = 0; d < n; d++)
    all *= dims[d];
  *z = floats(1, all, 0, 0, all);
  drop(&x), drop(&y);
}

// product is a matrix product of operands of one type to one of another. Transposed
// operands lie in columns.
static void product(long m, long n, long k, dnnl_data_type_t in, dnnl_data_type_t out, int columns_a, int columns_b, sizes *z) {
  desc a = typed(2, (dnnl_dims_t){m, k}, in, columns_a ? (dnnl_dims_t){1, m} : (dnnl_dims_t){k, 1});
  desc b = typed(2, (dnnl_dims_t){k, n}, in, columns_b ? (dnnl_dims_t){1, k} : (dnnl_dims_t){n, 1});
  desc c = typed(2, (dnnl_dims_t){m, n}, out, (dnnl_dims_t){n, 1});
  dnnl_primitive_desc_t pd = NULL;
  ok(dnnl_matmul_primitive_desc_create(&pd, engine, a, b, NULL, c, NULL));
  build(pd);
  argument(DNNL_ARG_SRC, a);
  argument(DNNL_ARG_WEIGHTS, b);
  argument(DNNL_ARG_DST, c);
  size_t w = dnnl_data_type_size(in);
  *z = (sizes){2, {m * k * w, k * n * w}, m * n * dnnl_data_type_size(out)};
  drop(&a), drop(&b), drop(&c);
}

// convolution is of images in rows of channels; its weights may get another layout.
static void convolution(const long *d, dnnl_data_type_t in, dnnl_data_type_t out, sizes *z) {
  long n = d[0], h = d[1], w = d[2], c = d[3], k = d[4], o = d[5], s = d[6], pad = k / 2;
  long oh = (h + 2 * pad - k) / s + 1, ow = (w + 2 * pad - k) / s + 1;
  dnnl_dims_t sides = {pad, pad}, strides = {s, s}, dilation = {0, 0}, kernel = {o, c, k, k};
  desc x = typed(4, (dnnl_dims_t){n, c, h, w}, in, (dnnl_dims_t){h * w * c, 1, w * c, c});
  desc y = typed(4, (dnnl_dims_t){n, o, oh, ow}, out, (dnnl_dims_t){oh * ow * o, 1, ow * o, o});
  desc any = NULL;
  plain_weights = typed(4, kernel, in, (dnnl_dims_t){1, o, k * c * o, c * o});
  ok(dnnl_memory_desc_create_with_tag(&any, 4, kernel, in, dnnl_format_tag_any));
  dnnl_primitive_desc_t pd = NULL;
  ok(dnnl_convolution_forward_primitive_desc_create(&pd, engine, dnnl_forward_inference, dnnl_convolution_direct, x, any, NULL, y, strides, dilation, sides, sides, NULL));
  if (pd)
    ok(dnnl_memory_desc_clone(&packed_weights, dnnl_primitive_desc_query_md(pd, dnnl_query_weights_md, 0)));
  build(pd);
  argument(DNNL_ARG_SRC, x);
  argument(DNNL_ARG_WEIGHTS, packed_weights);
  argument(DNNL_ARG_DST, y);
  size_t width = dnnl_data_type_size(in);
  *z = (sizes){2, {n * h * w * c * width, k * k * c * o * width}, n * oh * ow * o * dnnl_data_type_size(out)};
  drop(&x), drop(&y), drop(&any);
}

// pack is the memory of weights in the layout of the primitive; made once.
static dnnl_memory_t pack(void *weights) {
  for (int k = 0; k < n_packed; k++)
    if (packed[k].from == weights)
      return packed[k].to;
  dnnl_memory_t from = NULL, to = NULL;
  dnnl_primitive_desc_t pd = NULL;
  dnnl_primitive_t copy = NULL;
  ok(dnnl_memory_create(&from, plain_weights, engine, weights));
  ok(dnnl_memory_create(&to, packed_weights, engine, DNNL_MEMORY_ALLOCATE));
  ok(dnnl_reorder_primitive_desc_create(&pd, plain_weights, engine, packed_weights, engine, NULL));
  ok(dnnl_primitive_create(&copy, pd));
  ok(dnnl_primitive_execute(copy, stream, 2, (dnnl_exec_arg_t[]){{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}));
  ok(dnnl_stream_wait(stream));
  dnnl_primitive_destroy(copy), dnnl_primitive_desc_destroy(pd), dnnl_memory_destroy(from);
  packed[n_packed].from = weights, packed[n_packed].to = to;
  n_packed++;
  return to;
}

static const char *none = "not an operation of this driver";

static const char *start2(const char *op, const long *d, sizes *z) {
  if (!strcmp(op, "layernorm"))
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
  else if (!strcmp(op, "gemv") || !strcmp(op, "gemv_columns"))
    product(d[0], 1, d[1], dnnl_f32, dnnl_f32, op[4] != 0, 0, z);
  else if (!strcmp(op, "gevm") || !strcmp(op, "gevm_rows"))
    product(1, d[0], d[1], dnnl_f32, dnnl_f32, 0, op[4] != 0, z);
  else
    return none;
  return NULL;
}

static const char *start(const char *op, const long *d, int n, sizes *z) {
  if (n == 2)
    return start2(op, d, z);
  if (!strcmp(op, "swap") && n == 4)
    reorder(4, (dnnl_dims_t){d[0], d[1], d[2], d[3]}, (dnnl_dims_t){d[1] * d[2] * d[3], d[2] * d[3], d[3], 1},
            (dnnl_dims_t){d[1] * d[2] * d[3], d[3], d[1] * d[3], 1}, z);
  else if (!strcmp(op, "sgemm") && n == 3)
    product(d[0], d[1], d[2], dnnl_f32, dnnl_f32, 0, 0, z);
  else if (!strcmp(op, "bf16gemm") && n == 3)
    product(d[0], d[1], d[2], dnnl_bf16, dnnl_f32, 0, 0, z);
  else if (!strcmp(op, "s8gemm") && n == 3)
    product(d[0], d[1], d[2], dnnl_s8, dnnl_s32, 0, 0, z);
  else if (!strcmp(op, "conv") && n == 7)
    convolution(d, dnnl_f32, dnnl_f32, z);
  else if (!strcmp(op, "s8conv") && n == 7)
    convolution(d, dnnl_s8, dnnl_s32, z);
  else
    return none;
  return NULL;
}

// pin leaves the process as many processors as it is to have threads.
static void pin(void) {
  const char *text = getenv("OMP_NUM_THREADS");
  int n = text ? atoi(text) : 0;
  cpu_set_t mine, some;
  CPU_ZERO(&some);
  if (n < 1 || sched_getaffinity(0, sizeof mine, &mine))
    return;
  for (int c = 0; c < CPU_SETSIZE && CPU_COUNT(&some) < n; c++)
    if (CPU_ISSET(c, &mine))
      CPU_SET(c, &some);
  sched_setaffinity(0, sizeof some, &some);
}

static int has_engine(void) {
  if (engine)
    return 1;
  pin();
#ifdef OPENCL_CPU
  setenv("OCL_ICD_FILENAMES", OPENCL_CPU, 0);
#endif
  return !dnnl_engine_create(&engine, dnnl_cpu, 0) && !dnnl_stream_create(&stream, engine, dnnl_stream_default_flags);
}

const char *prepare(const char *op, const long *dims, int n_dims, sizes *z) {
  static char why[64];
  if (!has_engine())
    return "oneDNN has no CPU engine";
  status = dnnl_success;
  const char *no = start(op, dims, n_dims, z);
  if (!no && status != dnnl_success) {
    snprintf(why, sizeof why, status == dnnl_unimplemented ? "oneDNN has none for this processor" : "oneDNN's status is %d", status);
    no = why;
  }
  if (no)
    finish();
  return no;
}

void run(void *const *in, void *out) {
  for (int k = 0; k < n_args; k++)
    if (k == 1 && packed_weights)
      args[k].memory = pack(in[k]);
    else
      dnnl_memory_set_data_handle(memory[k], k < n_args - 1 ? in[k] : out);
  dnnl_primitive_execute(primitive, stream, n_args, args);
  dnnl_stream_wait(stream);
}

void finish(void) {
  for (int k = 0; k < n_args; k++)
    if (memory[k])
      dnnl_memory_destroy(memory[k]);
  memset(memory, 0, sizeof memory);
  for (int k = 0; k < n_packed; k++)
    dnnl_memory_destroy(packed[k].to);
  n_args = n_packed = 0;
  drop(&plain_weights), drop(&packed_weights);
  if (primitive)
    dnnl_primitive_destroy(primitive);
  primitive = NULL;
}

const char *version(void) {
  static char text[64];
  const dnnl_version_t *v = dnnl_version();
  snprintf(text, sizeof text, "oneDNN %d.%d.%d%s", v->major, v->minor, v->patch, v->cpu_runtime == DNNL_RUNTIME_SYCL ? ", SYCL" : "");
  return text;
}

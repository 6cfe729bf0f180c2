// isl: WORKLOAD.isl TIMES.tsv [BUDGET_MS [ANSWERS.tsv]]
//
// Times isl on the chains that `bench/symbolic -isl` exports: a line
// "P id n", then n lines "M { [..] -> [..] : .. }". Maps are parsed before, and
// everything is warm. Nanoseconds of a run, the median of 11 batches:
//
//   compose  isl_pw_multi_aff_pullback along the chain
//   gist     compose, coalesce, gist by the domain: isl's simplification
//   bounds   emptiness and the least and greatest value of every variable
//
// ANSWERS.tsv gets a line a chain: its id, then what gist makes of the results over
// x0, x1, ..; no results where they are in several pieces. A budget of 0 times
// nothing. isl gives a chain up after max_operations, at time 0 and without results.
#include <isl/aff.h>
#include <isl/ctx.h>
#include <isl/ilp.h>
#include <isl/options.h>
#include <isl/set.h>
#include <isl/space.h>
#include <isl/val.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { max_maps = 64, batches = 11, max_operations = 20000000 };

typedef struct {
  int n;
  isl_pw_multi_aff *map[max_maps];
  isl_set *domain;
} chain;

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1e9 + t.tv_nsec;
}

static isl_pw_multi_aff *compose(const chain *c) {
  isl_pw_multi_aff *r = isl_pw_multi_aff_copy(c->map[0]);
  for (int i = 1; i < c->n; i++)
    r = isl_pw_multi_aff_pullback_pw_multi_aff(isl_pw_multi_aff_copy(c->map[i]), r);
  return r;
}

static void run_compose(const chain *c) { isl_pw_multi_aff_free(compose(c)); }

static isl_pw_multi_aff *gist(const chain *c) {
  isl_pw_multi_aff *r = isl_pw_multi_aff_coalesce(compose(c));
  isl_set *d = isl_pw_multi_aff_domain(isl_pw_multi_aff_copy(r));
  return isl_pw_multi_aff_gist(r, d);
}

static void run_gist(const chain *c) { isl_pw_multi_aff_free(gist(c)); }

static void run_bounds(const chain *c) {
  isl_set_is_empty(c->domain);
  int n = isl_set_dim(c->domain, isl_dim_set);
  for (int i = 0; i < n; i++) {
    isl_val_free(isl_set_dim_min_val(isl_set_copy(c->domain), i));
    isl_val_free(isl_set_dim_max_val(isl_set_copy(c->domain), i));
  }
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

// measure spends about budget nanoseconds; one very long run is enough.
static double measure(void (*run)(const chain *), const chain *c, double budget) {
  double start = now(), mean[batches];
  run(c);
  double once = now() - start + 1;
  int n = budget / batches / once, k = once > 2e8 ? 1 : once > 2e7 ? 3 : batches;
  n = n < 1 ? 1 : n > 20000 ? 20000 : n;
  for (int b = 0; b < k; b++) {
    start = now();
    for (int i = 0; i < n; i++)
      run(c);
    mean[b] = (now() - start) / n;
  }
  qsort(mean, k, sizeof mean[0], ascending);
  return mean[k / 2];
}

static void put_val(FILE *out, isl_val *v, const char *before) {
  char *s = isl_val_to_str(v);
  fprintf(out, "%s(%s)", before, s);
  free(s);
  isl_val_free(v);
}

// put_aff writes an expression whose quotients are rounded down: the numerator,
// with the denominator outside.
static void put_aff(FILE *out, isl_aff *a) {
  isl_val *den = isl_aff_get_denominator_val(a);
  int divided = !isl_val_is_one(den);
  fputs(divided ? "((" : "(", out);
  put_val(out, isl_val_mul(isl_aff_get_constant_val(a), isl_val_copy(den)), "");
  int n = isl_aff_dim(a, isl_dim_in), m = isl_aff_dim(a, isl_dim_div);
  for (int i = 0; i < n + m; i++) {
    enum isl_dim_type type = i < n ? isl_dim_in : isl_dim_div;
    int j = i < n ? i : i - n;
    isl_val *k = isl_val_mul(isl_aff_get_coefficient_val(a, type, j), isl_val_copy(den));
    if (isl_val_is_zero(k)) {
      isl_val_free(k);
      continue;
    }
    fputs(" + ", out);
    if (i < n) {
      fprintf(out, "x%d", j);
    } else {
      isl_aff *q = isl_aff_get_div(a, j);
      put_aff(out, q);
      isl_aff_free(q);
    }
    put_val(out, k, " * ");
  }
  fputs(")", out);
  if (divided)
    put_val(out, isl_val_copy(den), " floordiv "), fputs(")", out);
  isl_val_free(den);
}

static isl_stat put_piece(isl_set *s, isl_multi_aff *piece, void *out) {
  int n = isl_multi_aff_dim(piece, isl_dim_out);
  for (int i = 0; i < n; i++) {
    isl_aff *a = isl_multi_aff_get_aff(piece, i);
    fputs("\t", out);
    put_aff(out, a);
    isl_aff_free(a);
  }
  isl_set_free(s);
  isl_multi_aff_free(piece);
  return isl_stat_ok;
}

static void answer(FILE *out, const char *id, const chain *c) {
  fputs(id, out);
  isl_pw_multi_aff *r = gist(c);
  if (r && isl_pw_multi_aff_n_piece(r) == 1)
    isl_pw_multi_aff_foreach_piece(r, put_piece, out);
  fputs("\n", out);
  isl_pw_multi_aff_free(r);
}

// timed is measure for what does not end at once: 0 where isl gave up.
static double timed(isl_ctx *ctx, void (*run)(const chain *), const chain *c, double budget) {
  if (budget <= 0)
    return 0;
  isl_ctx_reset_operations(ctx);
  isl_ctx_set_max_operations(ctx, max_operations);
  run(c);
  int gave_up = isl_ctx_last_error(ctx) == isl_error_quota;
  isl_ctx_set_max_operations(ctx, 0);
  isl_ctx_reset_error(ctx);
  return gave_up ? 0 : measure(run, c, budget);
}

static int fail(const char *what, const char *line) {
  fprintf(stderr, "isl: %s: %s\n", what, line);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return fail("usage", "WORKLOAD.isl TIMES.tsv [BUDGET_MS [ANSWERS.tsv]]");
  FILE *in = fopen(argv[1], "r"), *out = fopen(argv[2], "w");
  FILE *answers = argc > 4 ? fopen(argv[4], "w") : NULL;
  if (!in || !out || (argc > 4 && !answers))
    return fail("cannot open", argv[!in ? 1 : !out ? 2 : 4]);
  double budget = (argc > 3 ? atof(argv[3]) : 30) * 1e6;
  isl_ctx *ctx = isl_ctx_alloc();
  isl_options_set_on_error(ctx, ISL_ON_ERROR_CONTINUE);
  char *line = NULL, id[256];
  size_t room = 0;
  chain c;
  fprintf(out, "id\tcompose\tgist\tbounds\n");
  while (getline(&line, &room, in) > 0) {
    if (sscanf(line, "P %255s %d", id, &c.n) != 2 || c.n < 1 || c.n > max_maps)
      return fail("not a chain", line);
    for (int i = 0; i < c.n; i++)
      if (getline(&line, &room, in) <= 0 || line[0] != 'M' || !(c.map[i] = isl_pw_multi_aff_read_from_str(ctx, line + 2)))
        return fail("not a map", line);
    c.domain = isl_pw_multi_aff_domain(compose(&c));
    if (answers) {
      isl_ctx_reset_operations(ctx);
      isl_ctx_set_max_operations(ctx, max_operations);
      answer(answers, id, &c);
      isl_ctx_set_max_operations(ctx, 0);
      isl_ctx_reset_error(ctx);
    }
    double composed = timed(ctx, run_compose, &c, budget), gist = timed(ctx, run_gist, &c, budget), bounds = timed(ctx, run_bounds, &c, budget);
    fprintf(out, "%s\t%.0f\t%.0f\t%.0f\n", id, composed, gist, bounds);
    for (int i = 0; i < c.n; i++)
      isl_pw_multi_aff_free(c.map[i]);
    isl_set_free(c.domain);
  }
  free(line);
  isl_ctx_free(ctx);
  return fclose(out) != 0 || (answers && fclose(answers) != 0);
}

// isl: WORKLOAD.isl TIMES.tsv [BUDGET_MS]
//
// Times isl on the chains that `tilewright bench-symbolic -isl` exports: a line
// "P id n", then n lines "M { [..] -> [..] : .. }". Maps are parsed before, and
// everything is warm. Nanoseconds of a run, the median of 11 batches:
//
//   compose  isl_pw_multi_aff_pullback along the chain
//   gist     compose, coalesce, gist by the domain: isl's simplification
//   bounds   emptiness and the least and greatest value of every variable
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

enum { max_maps = 64, batches = 11 };

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

static void run_gist(const chain *c) {
  isl_pw_multi_aff *r = isl_pw_multi_aff_coalesce(compose(c));
  isl_set *d = isl_pw_multi_aff_domain(isl_pw_multi_aff_copy(r));
  isl_pw_multi_aff_free(isl_pw_multi_aff_gist(r, d));
}

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

static int fail(const char *what, const char *line) {
  fprintf(stderr, "isl: %s: %s\n", what, line);
  return 1;
}

int main(int argc, char **argv) {
  if (argc < 3)
    return fail("usage", "WORKLOAD.isl TIMES.tsv [BUDGET_MS]");
  FILE *in = fopen(argv[1], "r"), *out = fopen(argv[2], "w");
  if (!in || !out)
    return fail("cannot open", argv[in ? 2 : 1]);
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
    double composed = measure(run_compose, &c, budget), gist = measure(run_gist, &c, budget), bounds = measure(run_bounds, &c, budget);
    fprintf(out, "%s\t%.0f\t%.0f\t%.0f\n", id, composed, gist, bounds);
    for (int i = 0; i < c.n; i++)
      isl_pw_multi_aff_free(c.map[i]);
    isl_set_free(c.domain);
  }
  free(line);
  isl_ctx_free(ctx);
  return fclose(out) != 0;
}

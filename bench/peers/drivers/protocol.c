#include "protocol.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>

enum { max_sets = 8, max_dims = 8, page = 4096, max_runs = 1000 };

static sizes size;
static int sets, next;
static void *in[max_sets][max_in], *out[max_sets];

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec + t.tv_nsec * 1e-9;
}

static void *buffer(size_t n) {
  size_t bytes = (n + page - 1) / page * page;
  void *p = aligned_alloc(page, bytes ? bytes : page);
  if (!p) {
    puts("error out of memory");
    exit(1);
  }
#ifdef MADV_HUGEPAGE
  madvise(p, bytes, MADV_HUGEPAGE); // as kernels.NewBuffer asks for: no luck with pages on either side
#endif
  memset(p, 0, bytes);
  return p;
}

static void do_close(void) {
  for (int s = 0; s < sets; s++) {
    for (int i = 0; i < size.n_in; i++)
      free(in[s][i]);
    free(out[s]);
  }
  if (sets)
    finish();
  sets = 0;
}

static void do_open(char *rest) {
  long dims[max_dims];
  int n = 0, want = 0, used = 0;
  char op[64];
  if (sscanf(rest, "%63s %d%n", op, &want, &used) != 2 || want < 1 || want > max_sets) {
    puts("error expected: open OP SETS DIM...");
    return;
  }
  for (char *end, *p = rest + used; n < max_dims; p = end, n++) {
    dims[n] = strtol(p, &end, 10);
    if (end == p)
      break;
  }
  do_close();
  memset(&size, 0, sizeof size);
  const char *no = prepare(op, dims, n, &size);
  if (no) {
    printf("error %s\n", no);
    return;
  }
  for (sets = 0; sets < want; sets++) {
    for (int i = 0; i < size.n_in; i++)
      in[sets][i] = buffer(size.in[i]);
    out[sets] = buffer(size.out);
  }
  next = 0;
  printf("ok %d\n", size.n_in);
}

static void do_load(char *rest) {
  int i = -1, used = 0;
  if (sscanf(rest, "%d %n", &i, &used) != 1 || !sets || i < 0 || i >= size.n_in) {
    puts("error there is no such input");
    return;
  }
  FILE *f = fopen(rest + used, "rb");
  size_t n = f ? fread(in[0][i], 1, size.in[i], f) : 0;
  int more = f ? fgetc(f) != EOF : 0;
  if (f)
    fclose(f);
  if (n != size.in[i] || more) {
    printf("error %s does not hold %zu bytes\n", rest + used, size.in[i]);
    return;
  }
  for (int s = 1; s < sets; s++)
    memcpy(in[s][i], in[0][i], n);
  puts("ok");
}

static void do_check(const char *name) {
  memset(out[0], 0xff, size.out); // not a number, in every type of floats
  run(in[0], out[0]);
  FILE *f = fopen(name, "wb");
  size_t n = f ? fwrite(out[0], 1, size.out, f) : 0;
  if (!f || fclose(f) || n != size.out)
    printf("error %s cannot be written\n", name);
  else
    puts("ok");
}

static void turn(void) {
  run(in[next], out[next]);
  next = (next + 1) % sets;
}

static int ascending(const void *a, const void *b) {
  double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void do_time(int n) {
  static double seconds[max_runs];
  if (n < 1 || n > max_runs) {
    printf("error between 1 and %d runs are timed\n", max_runs);
    return;
  }
  if (n > 1)
    turn(); // wakes threads; a single run is long enough not to need it
  for (int k = 0; k < n; k++) {
    double start = now();
    turn();
    seconds[k] = now() - start;
  }
  qsort(seconds, n, sizeof seconds[0], ascending);
  printf("seconds %.9g\n", (seconds[(n - 1) / 2] + seconds[n / 2]) / 2);
}

static void answer(char *line) {
  char *rest = strchr(line, ' ');
  if (rest)
    *rest++ = 0;
  else
    rest = line + strlen(line);
  if (!strcmp(line, "hello"))
    printf("version %s\n", version());
  else if (!strcmp(line, "text"))
    puts("ok"); // the name of the operation says enough
  else if (!strcmp(line, "open"))
    do_open(rest);
  else if (!strcmp(line, "close"))
    do_close(), puts("ok");
  else if (!strcmp(line, "load"))
    do_load(rest);
  else if (!sets)
    puts("error nothing is open");
  else if (!strcmp(line, "check"))
    do_check(rest);
  else if (!strcmp(line, "time"))
    do_time(atoi(rest));
  else
    printf("error unknown command %s\n", line);
}

int main(void) {
  static char line[8192];
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    answer(line);
    fflush(stdout);
  }
}

/* Tests tilewright_snapshot.h: reader SNAPSHOT WHAT, for the device "cpu:test", the
 * backend "cpu" and the revision "go1", with fingerprints on the standard input.
 *
 *   answers  prints what is stored of each fingerprint, or the status
 *   flips N  flips N random bits, one at a time: every answer is the stored one, or the
 *            status says that the file is damaged
 *   cut      the same for files that are cut short, and of a mapped file under a reader
 *   speed    nanoseconds a lookup, the least of many batches: hot, then in turns */
#define _XOPEN_SOURCE 700
#include <inttypes.h>
#include <stdio.h>
#include <time.h>

#include "tilewright_snapshot.h"

#define DEMAND(x)                                              \
  do {                                                         \
    if (!(x)) {                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
      exit(1);                                                 \
    }                                                          \
  } while (0)

static unsigned char (*prints)[32];
static size_t count;
static unsigned char room[1 << 16];

static int opened(const char *path, int flags, tilewright_snapshot **s) {
  return tilewright_snapshot_open(path, "cpu:test", "cpu", "go1", flags, s);
}

static void read_prints(void) {
  char line[80];
  size_t capacity = 0;
  while (fgets(line, sizeof line, stdin)) {
    line[strcspn(line, "\n")] = 0;
    if (count == capacity) {
      capacity = capacity ? 2 * capacity : 1024;
      prints = (unsigned char (*)[32])realloc(prints, capacity * sizeof *prints);
      DEMAND(prints);
    }
    DEMAND(!tilewright_snapshot_fingerprint(line, prints[count++]));
  }
}

static void answers(tilewright_snapshot *s) {
  size_t k;
  for (k = 0; k < count; k++) {
    tilewright_snapshot_answer a;
    const char *tie;
    size_t n;
    int status = tilewright_snapshot_get(s, prints[k], room, sizeof room, &a);
    if (status) {
      puts(tilewright_snapshot_status_text(status));
      continue;
    }
    printf("%.*s|%.*s|%.*s|%.17g|%.17g|%.17g %.17g %.17g|%.17g|%" PRId64 "|%d%d%d|%s|%s", (int)a.plan_length, a.plan,
           (int)a.default_length, a.default_plan, (int)a.dims_length, a.dims, a.seconds, a.default_seconds, a.speedup[0], a.speedup[1],
           a.speedup[2], a.regret, a.unix_seconds, a.checked, a.untimed, a.provisional, a.safe, a.tool);
    while (tilewright_snapshot_tie(&a, &tie, &n)) printf("|%.*s", (int)n, tie);
    putchar('\n');
  }
}

static uint64_t state = 1;
static uint64_t next(void) {
  state ^= state << 13;
  state ^= state >> 7;
  return state ^= state << 17;
}

/* What was stored, before any damage. */
typedef struct {
  int status;
  double seconds;
  char plan[320];
} stored;

static void look_up(const tilewright_snapshot *s, size_t k, stored *to) {
  tilewright_snapshot_answer a;
  memset(to, 0, sizeof *to);
  to->status = tilewright_snapshot_get(s, prints[k], room, sizeof room, &a);
  if (to->status) return;
  to->seconds = a.seconds;
  DEMAND(a.plan_length < sizeof to->plan);
  memcpy(to->plan, a.plan, a.plan_length);
}

/* Demands of a file with damage that every answer is right or an error. */
static int harmed(const char *path, const stored *want, int flags) {
  tilewright_snapshot *s;
  size_t k;
  int errors = 0;
  if (opened(path, flags, &s)) return 1;
  for (k = 0; k < count; k++) {
    stored got;
    look_up(s, k, &got);
    if (got.status == TILEWRIGHT_SNAPSHOT_DAMAGED || got.status == TILEWRIGHT_SNAPSHOT_SMALL) errors++;
    else DEMAND(!memcmp(&got, &want[k], sizeof got));
  }
  tilewright_snapshot_close(s);
  return errors > 0;
}

static void rewrite(const char *path, const unsigned char *data, size_t n) {
  FILE *f = fopen(path, "wb");
  DEMAND(f && fwrite(data, 1, n, f) == n && !fclose(f));
}

static void damage(const char *path, const char *what, long times) {
  tilewright_snapshot *s;
  size_t k, n;
  long noticed = 0, t;
  char copy[4096];
  stored *want = (stored *)calloc(count, sizeof *want);
  unsigned char *data;
  DEMAND(want && !opened(path, TILEWRIGHT_SNAPSHOT_COPY, &s));
  for (k = 0; k < count; k++) look_up(s, k, &want[k]);
  n = (size_t)s->size;
  data = (unsigned char *)malloc(n);
  DEMAND(data);
  memcpy(data, s->data, n);
  tilewright_snapshot_close(s);
  snprintf(copy, sizeof copy, "%s.damaged", path);
  if (!strcmp(what, "flips")) {
    int file;
    rewrite(copy, data, n);
    file = open(copy, O_RDWR);
    for (t = 0; t < times; t++) {
      const uint64_t bit = next() % (8 * (uint64_t)n);
      const unsigned char bad = (unsigned char)(data[bit / 8] ^ 1 << bit % 8);
      DEMAND(pwrite(file, &bad, 1, (off_t)(bit / 8)) == 1);
      noticed += harmed(copy, want, (int)(t & 1));
      DEMAND(pwrite(file, &data[bit / 8], 1, (off_t)(bit / 8)) == 1);
    }
    close(file);
    printf("%ld flipped bits: %ld noticed, the others in what is not read; no wrong answer, no miss\n", times, noticed);
  } else {
    for (k = 0; k < n; k += 1 + n / 500) {
      rewrite(copy, data, k);
      DEMAND(opened(copy, 0, &s) && !s);
    }
    rewrite(copy, data, n);
    DEMAND(!opened(copy, TILEWRIGHT_SNAPSHOT_COPY, &s));
    DEMAND(!truncate(copy, 0) && tilewright_snapshot_intact(s));
    for (k = 0; k < count; k++) {
      stored got;
      look_up(s, k, &got);
      DEMAND(!memcmp(&got, &want[k], sizeof got));
    }
    tilewright_snapshot_close(s);
    rewrite(copy, data, n);
    DEMAND(!opened(copy, 0, &s) && tilewright_snapshot_intact(s));
    DEMAND(!truncate(copy, 100) && !tilewright_snapshot_intact(s));
    tilewright_snapshot_close(s);
    puts("files cut short: refused, seen by _intact, and of no effect on a copy");
  }
  unlink(copy);
  free(data);
  free(want);
}

static double seconds_now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

/* The least and the median of batches. */
static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

static void speed(const tilewright_snapshot *s) {
  enum { BATCHES = 300, EACH = 1000 };
  static double all[BATCHES];
  int turns, b, k;
  size_t at = 0;
  for (turns = 0; turns < 2; turns++) {
    for (b = 0; b < BATCHES; b++) {
      const double begin = seconds_now();
      for (k = 0; k < EACH; k++) {
        tilewright_snapshot_answer a;
        DEMAND(!tilewright_snapshot_get(s, prints[at], room, sizeof room, &a));
        at = turns ? (at + 1) % count : 0;
      }
      all[b] = (seconds_now() - begin) / EACH * 1e9;
    }
    qsort(all, BATCHES, sizeof *all, ascending);
    printf("%s %.1f %.1f\n", turns ? "random" : "hot", all[0], all[BATCHES / 2]);
  }
}

int main(int argc, char **argv) {
  tilewright_snapshot *s;
  int status;
  DEMAND(argc > 2);
  read_prints();
  if (!strcmp(argv[2], "flips") || !strcmp(argv[2], "cut")) {
    damage(argv[1], argv[2], argc > 3 ? atol(argv[3]) : 100);
    free(prints);
    return 0;
  }
  status = opened(argv[1], 0, &s);
  if (status) {
    fprintf(stderr, "%s\n", tilewright_snapshot_status_text(status));
    return 1;
  }
  {
    tilewright_snapshot *none;
    DEMAND(tilewright_snapshot_open(NULL, "", "", "", 0, &none) == TILEWRIGHT_SNAPSHOT_REQUEST && !none);
  }
  if (!strcmp(argv[2], "speed")) speed(s);
  else answers(s);
  tilewright_snapshot_close(s);
  free(prints);
  return 0;
}

/* Nanoseconds of tilewright_get: speed SNAPSHOT IDENTITY, with fingerprints on the
 * standard input; hot, then in turns, the least and the median of batches. */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "tilewright.h"
#include "tilewright_snapshot.h"

static unsigned char (*prints)[32];
static size_t count;

static int ascending(const void *a, const void *b) {
  const double x = *(const double *)a, y = *(const double *)b;
  return (x > y) - (x < y);
}

int main(int argc, char **argv) {
  enum { BATCHES = 300, EACH = 1000 };
  static double all[BATCHES];
  char line[80], plan[512], *error;
  size_t capacity = 0, at = 0;
  tilewright_db db;
  if (argc != 3 || tilewright_open(argv[1], argv[2], &db, &error)) return 1;
  while (fgets(line, sizeof line, stdin)) {
    line[64] = 0;
    if (count == capacity) prints = realloc(prints, (capacity = 2 * capacity + 1024) * sizeof *prints);
    if (!prints || tilewright_snapshot_fingerprint(line, prints[count++])) return 2;
  }
  for (int turns = 0; turns < 2; turns++) {
    for (int b = 0; b < BATCHES; b++) {
      struct timespec x, y;
      clock_gettime(CLOCK_MONOTONIC, &x);
      for (int k = 0; k < EACH; k++) {
        if (tilewright_get(db, prints[at], plan, sizeof plan, NULL)) return 3;
        at = turns ? (at + 1) % count : 0;
      }
      clock_gettime(CLOCK_MONOTONIC, &y);
      all[b] = ((double)(y.tv_sec - x.tv_sec) * 1e9 + (double)(y.tv_nsec - x.tv_nsec)) / EACH;
    }
    qsort(all, BATCHES, sizeof *all, ascending);
    printf("%s %.1f %.1f\n", turns ? "random" : "hot", all[0], all[BATCHES / 2]);
  }
  free(prints);
  return tilewright_close(db);
}

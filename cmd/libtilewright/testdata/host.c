/* A host that tests libtilewright: host SNAPSHOT MODULE FINGERPRINT all | memory [DEVICE] |
 * threads [ROUNDS].
 * With the argument "signals" it loads the library (LIB) after its own handlers. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "tilewright.h"

#define DEMAND(x)                                              \
  do {                                                         \
    if (!(x)) {                                                \
      fprintf(stderr, "%s:%d: %s\n", __FILE__, __LINE__, #x); \
      exit(1);                                                 \
    }                                                          \
  } while (0)

static char module[1 << 20];
static size_t length;
static const char *snapshot;
static unsigned char print[32];

static void expect(int status, int want, char **result, const char *part) {
  char *text = *result;
  if (status != want || !text || !strstr(text, part)) {
    fprintf(stderr, "status %d, want %d; \"%s\", want \"%s\"\n", status, want, text ? text : "NULL", part);
    exit(1);
  }
  tilewright_free(text);
}

static tilewright_db opened(const char *device) {
  tilewright_db db;
  char *text;
  DEMAND(tilewright_open(snapshot, device, &db, &text) == TILEWRIGHT_OK && db && !text);
  return db;
}

/* What is stored for the fusion on its device. */
static void stored(tilewright_db db) {
  char *t, plan[512], small[2];
  double seconds;
  expect(tilewright_lookup(db, module, length, NULL, 0, &t), TILEWRIGHT_OK, &t, "\"answer\":\"exact\"");
  DEMAND(tilewright_get(db, print, plan, sizeof plan, &seconds) == TILEWRIGHT_OK && *plan && seconds > 0);
  DEMAND(tilewright_get(db, print, small, sizeof small, NULL) == TILEWRIGHT_SMALL);
}

static void answers(tilewright_db db) {
  char *t;
  expect(tilewright_lookup(db, module, length, NULL, 0, &t), TILEWRIGHT_OK, &t, "\"answer\":\"");
  expect(tilewright_lookup(db, module, length, "none", 0, &t), TILEWRIGHT_INPUT, &t, "no fusion");
  expect(tilewright_plan(db, module, length, NULL, &t), TILEWRIGHT_OK, &t, "\"answer\":\"default\"");
  expect(tilewright_fingerprint(module, length, &t), TILEWRIGHT_OK, &t, "\"fingerprint\"");
  expect(tilewright_partition(module, length, &t), TILEWRIGHT_OK, &t, "\"distinct\":1");
  expect(tilewright_tiles(module, length, NULL, NULL, 0, NULL, 0, &t), TILEWRIGHT_OK, &t, "\"where\"");
  const int64_t none[1] = {0}; /* an empty array need not be NULL */
  expect(tilewright_tiles(module, length, NULL, none, 0, none, 0, &t), TILEWRIGHT_OK, &t, "\"where\"");
  const char request[] = "{\"id\":1,\"op\":\"version\"}";
  expect(tilewright_request(0, request, strlen(request), &t), TILEWRIGHT_OK, &t, "\"protocol\"");
  expect(tilewright_request(0, "{", 1, &t), TILEWRIGHT_OK, &t, "\"error\"");
}

/* A module with a scatter is split for the device of the handle that is asked: a GPU leaves
 * the scatter outside, and so its fusions are others. */
static void targets(void) {
  static const char gpu[] = "{\"device\": \"sim:H100\", \"backend\": \"gpu\", \"revision\": \"1\", \"safe\": {}}";
  static const char *const ops[] = {"partition", "fingerprint", "tiles", "lookup", "plan"};
  char text[1 << 12], request[1 << 13], *t;
  FILE *f = fopen("testdata/scatter.mlir", "rb");
  DEMAND(f);
  size_t n = fread(text, 1, sizeof text, f);
  fclose(f);
  tilewright_db cpu = opened("cpu"), other = opened(gpu);
  for (size_t k = 0; k < sizeof ops / sizeof *ops; k++) {
    int at = sprintf(request, "{\"op\": \"%s\", \"text\": \"", ops[k]);
    for (size_t j = 0; j < n; j++)
      at += sprintf(request + at, text[j] == '\n' ? "\\n" : text[j] == '"' ? "\\\"" : "%c", text[j]);
    at += sprintf(request + at, "\"}");
    expect(tilewright_request(other, request, (size_t)at, &t), TILEWRIGHT_OK, &t, "fused.u");
    DEMAND(tilewright_request(cpu, request, (size_t)at, &t) == TILEWRIGHT_OK && strstr(t, "fused.n") && !strstr(t, "fused.u"));
    tilewright_free(t);
  }
  expect(tilewright_lookup(other, text, n, "fused.u", 0, &t), TILEWRIGHT_OK, &t, "\"op\":\"scatter\",\"reason\":");
  expect(tilewright_plan(other, text, n, "fused.u", &t), TILEWRIGHT_OK, &t, "\"op\":\"scatter\",\"reason\":");
  expect(tilewright_lookup(cpu, text, n, "fused.u", 0, &t), TILEWRIGHT_INPUT, &t, "no fusion");
  DEMAND(tilewright_partition(text, n, &t) == TILEWRIGHT_OK && !strstr(t, "fused.u"));
  tilewright_free(t);
  DEMAND(tilewright_close(cpu) == TILEWRIGHT_OK && tilewright_close(other) == TILEWRIGHT_OK);
}

static void wrong(tilewright_db db) {
  char *t;
  unsigned char none[32] = {0};
  tilewright_db no;
  expect(tilewright_lookup(db, NULL, 3, NULL, 0, &t), TILEWRIGHT_REQUEST, &t, "argument");
  expect(tilewright_lookup(db + 99, module, length, NULL, 0, &t), TILEWRIGHT_REQUEST, &t, "not open");
  expect(tilewright_lookup(db, "HloModule", 9, NULL, 0, &t), TILEWRIGHT_INPUT, &t, "text:1");
  expect(tilewright_tiles("", 0, NULL, NULL, 0, NULL, 0, &t), TILEWRIGHT_INPUT, &t, "empty");
  expect(tilewright_lookup(db, module, (size_t)1 << 40, NULL, 0, &t), TILEWRIGHT_REQUEST, &t, "256 MiB");
  expect(tilewright_open(snapshot, "tpu", &no, &t), TILEWRIGHT_REQUEST, &t, "identity");

  DEMAND(tilewright_get(db, none, NULL, 0, NULL) == TILEWRIGHT_MISS);
  DEMAND(tilewright_lookup(db, module, length, NULL, 0, NULL) == TILEWRIGHT_REQUEST);
  DEMAND(tilewright_close(12345) == TILEWRIGHT_REQUEST);
  tilewright_free(NULL);
}

static tilewright_db shared;

/* Threads ask a handle that all share, and open and close their own. */
static void *asks(void *rounds) {
  for (long k = 0; k < (long)rounds; k++) {
    char *t, plan[512];
    DEMAND(tilewright_get(shared, print, plan, sizeof plan, NULL) == TILEWRIGHT_OK);
    expect(tilewright_fingerprint(module, length, &t), TILEWRIGHT_OK, &t, "\"fusions\"");
    expect(tilewright_lookup(shared, module, length, NULL, 0, &t), TILEWRIGHT_OK, &t, "exact");
    if (k % 8 == 0) {
      tilewright_db db = opened("cpu");
      DEMAND(tilewright_get(db, print, NULL, 0, NULL) == TILEWRIGHT_OK);
      DEMAND(tilewright_close(db) == TILEWRIGHT_OK);
    }
  }
  return NULL;
}

static void threads(long rounds) {
  pthread_t all[8];
  shared = opened("cpu");
  for (int k = 0; k < 8; k++) DEMAND(!pthread_create(&all[k], NULL, asks, (void *)rounds));
  for (int k = 0; k < 8; k++) pthread_join(all[k], NULL);
  DEMAND(tilewright_close(shared) == TILEWRIGHT_OK);
}

static volatile sig_atomic_t got[65];
static sigjmp_buf back;

static void count(int s) { got[s]++; }
__attribute__((unused)) static void fault(int s) { got[s]++; siglongjmp(back, 1); }

static void handle(int s, void (*f)(int)) {
  struct sigaction a = {0};
  a.sa_handler = f;
  a.sa_flags = SA_ONSTACK;
  DEMAND(!sigaction(s, &a, NULL));
}

static const int kinds[] = {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGALRM, SIGPIPE};

/* The handlers that the host installed before the library was loaded, or after, run. */
static void signals(int before) {
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) {
    if (!before) handle(kinds[k], count);
    int had = got[kinds[k]];
    raise(kinds[k]);
    if (got[kinds[k]] != had + 1) fprintf(stderr, "signal %d was not handled\n", kinds[k]);
    DEMAND(got[kinds[k]] == had + 1);
  }
  if (before) { /* a fault of the host's own goes to its own handler */
    int had = got[SIGSEGV];
    if (!sigsetjmp(back, 1)) *(volatile int *)8 = 1;
    DEMAND(got[SIGSEGV] == had + 1);
  }
}

/* A child of fork is told so, and does not hang; the parent goes on. */
static void forks(tilewright_db db) {
  pid_t child = fork();
  if (!child) {
    char *t;
    alarm(20);
    if (tilewright_lookup(db, module, length, NULL, 0, &t) != TILEWRIGHT_FORKED || !strstr(t, "fork")) _exit(1);
    tilewright_free(t);
    if (tilewright_get(db, print, NULL, 0, NULL) != TILEWRIGHT_FORKED) _exit(2);
    if (tilewright_close(db) != TILEWRIGHT_FORKED || !*tilewright_version()) _exit(3);
    _exit(0);
  }
  int status;
  DEMAND(waitpid(child, &status, 0) == child);
  DEMAND(WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

static void speed(tilewright_db db) {
  struct timespec a, b;
  enum { N = 200000 };
  char plan[512];
  clock_gettime(CLOCK_MONOTONIC, &a);
  for (int k = 0; k < N; k++) tilewright_get(db, print, plan, sizeof plan, NULL);
  clock_gettime(CLOCK_MONOTONIC, &b);
  printf("tilewright_get: %.0f ns\n", ((double)(b.tv_sec - a.tv_sec) * 1e9 + (double)(b.tv_nsec - a.tv_nsec)) / N);
}

int main(int argc, char **argv) {
  DEMAND(argc >= 5);
  snapshot = argv[1];
  FILE *f = fopen(argv[2], "rb");
  DEMAND(f);
  length = fread(module, 1, sizeof module, f);
  fclose(f);
  for (int k = 0; k < 32; k++) {
    unsigned byte;
    DEMAND(sscanf(argv[3] + 2 * k, "%2x", &byte) == 1);
    print[k] = (unsigned char)byte;
  }
  DEMAND(tilewright_abi() == TILEWRIGHT_ABI && strstr(tilewright_version(), "tilewright"));
  if (!strcmp(argv[4], "threads")) {
    threads(argc > 5 ? atol(argv[5]) : 50);
    return 0;
  }
  tilewright_db db = opened("cpu");
  answers(db);
  targets();
  wrong(db);
  /* valgrind shows a processor without AVX-512, for which nothing may be stored: the
   * device is named there. */
  tilewright_db named = opened(argc > 5 ? argv[5] : "cpu");
  stored(named);
  DEMAND(tilewright_close(named) == TILEWRIGHT_OK);
  if (strcmp(argv[4], "memory")) {
    signals(0);
    answers(db);
    forks(db);
    speed(db);
  }
  answers(db);
  DEMAND(tilewright_close(db) == TILEWRIGHT_OK);
  return 0;
}

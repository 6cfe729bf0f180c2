//go:build cgo

// The functions of tilewright.h. They check what must not reach the Go runtime, which
// does not live in a child of fork, and pass the rest on.
#include "tilewright.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include "_cgo_export.h"

static volatile int forked;

static void in_child(void) { forked = 1; }

static pthread_once_t named = PTHREAD_ONCE_INIT;
static char *version;

static void name(void) { version = goVersion(); }

__attribute__((constructor)) static void loaded(void) {
  pthread_atfork(NULL, NULL, in_child);
}

// fail stores a message.
static int fail(int status, char **result) {
  if (result) *result = strdup(tilewright_status_text(status));
  return status;
}

// Arguments that no function takes.
#define CHECK(valid, result)                                    \
  do {                                                          \
    if (result) *(result) = NULL;                               \
    if (forked) return fail(TILEWRIGHT_FORKED, result);         \
    if (!(result) || !(valid)) return fail(TILEWRIGHT_REQUEST, result); \
  } while (0)

int tilewright_abi(void) { return TILEWRIGHT_ABI; }

const char *tilewright_version(void) {
  if (forked && !version) return "tilewright";
  pthread_once(&named, name);
  return version;
}

const char *tilewright_status_text(int status) {
  static const char *const texts[] = {
      "ok", "nothing is stored", "an argument is NULL or out of range",
      "the text cannot be read or analysed", "the database or snapshot cannot be read",
      "internal error", "the process is a child of fork, which has no Go runtime",
      "the buffer is too small"};
  if (status < 0 || status >= (int)(sizeof texts / sizeof *texts)) return "unknown status";
  return texts[status];
}

void tilewright_free(void *result) { free(result); }

int tilewright_open(const char *path, const char *device, tilewright_db *db, char **error) {
  if (db) *db = 0;
  CHECK(path && device && db, error);
  return goOpen((char *)path, (char *)device, db, error);
}

int tilewright_close(tilewright_db db) {
  return forked ? TILEWRIGHT_FORKED : goClose(db);
}

int tilewright_get(tilewright_db db, const unsigned char fingerprint[32],
                   char *plan, size_t capacity, double *seconds) {
  if (forked) return TILEWRIGHT_FORKED;
  if (!fingerprint || (plan && !capacity)) return TILEWRIGHT_REQUEST;
  if (plan) *plan = 0;
  if (seconds) *seconds = 0;
  return goGet(db, (unsigned char *)fingerprint, plan, capacity, seconds);
}

int tilewright_lookup(tilewright_db db, const char *text, size_t length,
                      const char *fusion, int flags, char **result) {
  CHECK(text && !(flags & ~TILEWRIGHT_EXACT), result);
  return goLookup(db, (char *)text, length, (char *)fusion, flags, result);
}

int tilewright_plan(tilewright_db db, const char *text, size_t length,
                    const char *fusion, char **result) {
  CHECK(text, result);
  return goPlan(db, (char *)text, length, (char *)fusion, result);
}

int tilewright_fingerprint(const char *text, size_t length, char **result) {
  CHECK(text, result);
  return goFingerprint((char *)text, length, result);
}

int tilewright_partition(const char *text, size_t length, char **result) {
  CHECK(text, result);
  return goPartition((char *)text, length, result);
}

int tilewright_tiles(const char *text, size_t length, const char *fusion,
                     const int64_t *sizes, size_t size_count,
                     const int64_t *tile, size_t tile_count, char **result) {
  CHECK(text && (sizes || !size_count) && (tile || !tile_count), result);
  return goTiles((char *)text, length, (char *)fusion, (int64_t *)sizes, size_count,
                 (int64_t *)tile, tile_count, result);
}

int tilewright_request(tilewright_db db, const char *request, size_t length, char **result) {
  CHECK(request, result);
  return goRequest(db, (char *)request, length, result);
}

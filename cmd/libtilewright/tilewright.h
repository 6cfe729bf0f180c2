/* tilewright.h: the C interface of libtilewright (shared or static).
 *
 * A program opens a database or a published snapshot of tuned plans and asks it
 * which plan to use for a fusion; or asks for tiles, constraints and the
 * partition of a module, which need no database.
 *
 *   tilewright_db db;
 *   char *text;
 *   if (tilewright_open("winners.snapshot", "cpu", &db, &text)) { puts(text); exit(1); }
 *   if (tilewright_lookup(db, hlo, strlen(hlo), NULL, 0, &text) == TILEWRIGHT_OK) puts(text);
 *   tilewright_free(text);
 *   tilewright_close(db);
 *
 * Conventions
 *   Status   Functions return a tilewright_status; 0 is success.
 *   Results  A parameter char **result receives JSON on success and a message for
 *            people on failure, in UTF-8, ended by a zero byte; never NULL unless
 *            memory is exhausted. The caller frees it with tilewright_free. The
 *            documents are those of docs/formats.md.
 *   Text     A module is HLO or StableHLO, given by pointer and length in bytes; it
 *            need not end in a zero byte, and is not kept. At most 256 MiB.
 *   Threads  Every function may be called from any thread at any time, also with one
 *            handle. tilewright_close waits for the calls that use its handle.
 *   Calls    Nothing is called back. No function ends the process: failures inside
 *            are TILEWRIGHT_INTERNAL. (Exhausted memory ends it, as in any Go program.)
 *
 * Signals and fork: the library contains the Go runtime
 *   The runtime starts threads when the library is loaded, and installs handlers with
 *   SA_ONSTACK for SIGSEGV, SIGBUS, SIGFPE, SIGPIPE, SIGURG and others that only
 *   forward. A signal that comes while no Go code runs goes to the handler that was
 *   there before. Handlers of SIGINT, SIGTERM, SIGUSR1 and the like keep working, and
 *   may be installed before or after. A handler installed later for SIGSEGV, SIGBUS or
 *   SIGFPE replaces the runtime's: save the old one and call it for addresses that are
 *   not the host's, and set SA_ONSTACK. SIGURG must not be blocked for good.
 *   Signal stacks stay as small as they may be: of a processor with AMX plans are told
 *   without the permission to use it, after which Linux wants 12 KiB for each.
 *   fork: the child has no Go runtime. Every function there returns TILEWRIGHT_FORKED
 *   (tilewright_version, _abi, _status_text and _free work), so that nothing hangs; the
 *   parent is not affected. fork followed by exec is safe.
 *   dlclose does not unload the library.
 */
#ifndef TILEWRIGHT_H
#define TILEWRIGHT_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* The number of this interface. Functions are added within a number; a function is
 * changed or removed only with another one. Compare it with tilewright_abi(). */
#define TILEWRIGHT_ABI 1

/* What a function returns. */
typedef enum {
  TILEWRIGHT_OK = 0,
  TILEWRIGHT_MISS = 1,     /* nothing is stored (tilewright_get) */
  TILEWRIGHT_REQUEST = 2,  /* an argument is wrong: NULL, no handle, no such fusion */
  TILEWRIGHT_INPUT = 3,    /* the text cannot be read or analysed */
  TILEWRIGHT_STORE = 4,    /* the database or the snapshot */
  TILEWRIGHT_INTERNAL = 5, /* a bug in the library */
  TILEWRIGHT_FORKED = 6,   /* the process is a child of fork */
  TILEWRIGHT_SMALL = 7     /* the buffer is too small (tilewright_get) */
} tilewright_status;

/* An open database or snapshot. 0 is none; a number is never used twice. */
typedef uint64_t tilewright_db;

/* The interface of the loaded library: TILEWRIGHT_ABI of its header. */
int tilewright_abi(void);

/* The name and version of the library. The string is never freed. */
const char *tilewright_version(void);

/* A status in a few words. The string is never freed; an unknown number has one, too. */
const char *tilewright_status_text(int status);

/* Frees a result. NULL is nothing. */
void tilewright_free(void *result);

/* Opens a database or a snapshot; the first bytes of the file tell which, and a file
 * that does not exist is a database without winners. device is "cpu", this machine; or
 * the identity of any device as JSON, {"device": …, "backend": …, "revision": …,
 * "safe": {…}}, as records have it: for that there are no default plans. On failure
 * *db is 0 and *error has the message; on success *error is NULL. */
int tilewright_open(const char *path, const char *device, tilewright_db *db, char **error);

/* Closes it when the calls that use it have returned. TILEWRIGHT_REQUEST if db is not
 * open. */
int tilewright_close(tilewright_db db);

/* Finds the plan of a fingerprint of 32 bytes, the fast way: nothing is allocated for
 * the caller. plan receives the text of the plan, ended by a zero byte, and seconds its
 * time; either may be NULL. TILEWRIGHT_MISS: nothing is stored. TILEWRIGHT_SMALL: plan
 * needs more than capacity bytes (512 are enough for any plan of a backend here). */
int tilewright_get(tilewright_db db, const unsigned char fingerprint[32],
                   char *plan, size_t capacity, double *seconds);

/* The flag of tilewright_lookup that answers with stored winners of the fusion only. */
#define TILEWRIGHT_EXACT 1

/* Answers for every fusion of a module at once, or for the one that is called fusion
 * where that is not NULL: {"fusions": [{"answer", "plan", …}], "outside": […]}. */
int tilewright_lookup(tilewright_db db, const char *text, size_t length,
                      const char *fusion, int flags, char **result);

/* As tilewright_lookup, but the default plans, whatever is stored. */
int tilewright_plan(tilewright_db db, const char *text, size_t length,
                    const char *fusion, char **result);

/* The fingerprints of all fusions: {"fusions": [{"name", "fingerprint"}]}. These three have
 * no device: a module without fusions is split for the CPU. For a GPU, which leaves
 * scatters outside, ask tilewright_request with the handle of that device. */
int tilewright_fingerprint(const char *text, size_t length, char **result);

/* How a module is split into fusions, and at which price. */
int tilewright_partition(const char *text, size_t length, char **result);

/* Indexing maps, tiles and constraints of the fusions. With sizes, one for each
 * dimension of the one fusion, they are those of a tiling; with the ids of a tile, too,
 * they are numbers. Both may be NULL with a count of 0. */
int tilewright_tiles(const char *text, size_t length, const char *fusion,
                     const int64_t *sizes, size_t size_count,
                     const int64_t *tile, size_t tile_count, char **result);

/* Answers a request of the protocol of `tilewright serve`, one object of JSON, with its
 * response. Its field "shape" gives the extents that a text leaves open, as in
 * {"op": "lookup", "text": …, "shape": {"arg0": [8, 128]}}. An error in the response is TILEWRIGHT_OK here. db may be 0 for operations
 * that need none. */
int tilewright_request(tilewright_db db, const char *request, size_t length, char **result);

#ifdef __cplusplus
}
#endif
#endif

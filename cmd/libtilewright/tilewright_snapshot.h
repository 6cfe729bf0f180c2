/* tilewright_snapshot.h: reads published snapshots of tuned plans, in C99 or C++, for
 * hosts that do not want the Go runtime of libtilewright. It is the whole reader: there
 * is nothing to link. docs/formats.md describes the file.
 *
 *   tilewright_snapshot *s;
 *   int status = tilewright_snapshot_open("winners.snapshot", device, "cpu", revision, 0, &s);
 *   unsigned char room[512];
 *   tilewright_snapshot_answer a;
 *   if (!status) status = tilewright_snapshot_get(s, fingerprint, room, sizeof room, &a);
 *   if (!status) printf("%.*s\n", (int)a.plan_length, a.plan);
 *   tilewright_snapshot_close(s);
 *
 * Device, backend and revision are those of `tilewright devices -json` on the machine
 * that plans are wanted for; the fingerprint of a fusion is what `tilewright lookup
 * -json` and tilewright_fingerprint say.
 *
 * Damage    An answer is a copy, whose digest is compared after it was made: it is the
 *           stored one, or the status is an error. A flipped bit is never another answer
 *           and never a miss.
 * Files     A new snapshot is moved into the place of the old one, which stays as it is
 *           for those who have it open. A file that another program cuts short in its
 *           place ends a process that reads the mapping there by SIGBUS, as it does with
 *           every mapped file. tilewright_snapshot_intact says so before, and with
 *           TILEWRIGHT_SNAPSHOT_COPY the file is read to memory when it is opened, and
 *           nothing that happens to it afterwards matters.
 * Threads   Any number of threads may use one snapshot. Nothing is allocated, no lock is
 *           taken, and no signal handled by tilewright_snapshot_get.
 * fork      A child may go on with an open snapshot.
 */
#ifndef TILEWRIGHT_SNAPSHOT_H
#define TILEWRIGHT_SNAPSHOT_H

#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* What a function returns; the numbers are those of tilewright.h. */
enum {
  TILEWRIGHT_SNAPSHOT_OK = 0,
  TILEWRIGHT_SNAPSHOT_MISS = 1,    /* nothing is stored */
  TILEWRIGHT_SNAPSHOT_REQUEST = 2, /* an argument is NULL, or no fingerprint */
  TILEWRIGHT_SNAPSHOT_STORE = 4,   /* the file cannot be read, or is no snapshot of this version */
  TILEWRIGHT_SNAPSHOT_SMALL = 7,   /* the buffer is too small; answer.size says what is needed */
  TILEWRIGHT_SNAPSHOT_DAMAGED = 8  /* the file is damaged: publish it again */
};

/* The flag of tilewright_snapshot_open that reads the file to memory. */
#define TILEWRIGHT_SNAPSHOT_COPY 1

/* What is known of an origin: nothing, since it is damaged; that it has another device,
 * backend or revision; or all of it. */
enum { TILEWRIGHT_SNAPSHOT_BAD, TILEWRIGHT_SNAPSHOT_OTHER, TILEWRIGHT_SNAPSHOT_MINE };

/* What records share: one origin, copied out of the file. */
typedef struct {
  uint64_t digest;
  int state;
  char *block;             /* of mine */
  const char *safe, *tool; /* in the block, ended by a zero byte */
} tilewright_snapshot_origin;

/* An open snapshot, asked for one device, backend and revision. Its fields are not for
 * its users. */
typedef struct {
  const unsigned char *data;
  uint64_t size, revision;
  uint64_t texts; /* hash of device, backend and revision */
  uint64_t pilot_count, slots, slot_count, slot_lines;
  uint32_t records, origin_count;
  int fd, copied;
  tilewright_snapshot_origin *origins; /* by number */
} tilewright_snapshot;

/* What is stored. Texts lie in the buffer of the call and in the snapshot; those with a
 * length are not ended by a zero byte. Numbers are as in a record of the cache. */
typedef struct {
  const char *plan; /* "64,256,32 threads=2": tile sizes and knobs */
  size_t plan_length;
  const char *default_plan; /* what it was compared with; empty if unknown */
  size_t default_length;
  const char *dims; /* "m,n,k": names of the dimensions of the tile sizes; may be empty */
  size_t dims_length;
  const char *safe, *tool; /* JSON of the safe context, and who made the record */
  double seconds, default_seconds;
  double speedup[3]; /* over the default: median, lower and upper end; 0 is unknown */
  double regret;     /* -1 is unknown */
  int64_t unix_seconds;
  int checked, untimed, provisional;
  const unsigned char *ties; /* plans that are as fast: see tilewright_snapshot_tie */
  size_t ties_length;
  size_t size; /* bytes of the buffer that the record needs */
} tilewright_snapshot_answer;

/* The arithmetic of the format. */
static inline uint32_t tilewright_snapshot_u32(const unsigned char *p) {
  return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t tilewright_snapshot_u64(const unsigned char *p) {
  return (uint64_t)tilewright_snapshot_u32(p) | (uint64_t)tilewright_snapshot_u32(p + 4) << 32;
}

static inline double tilewright_snapshot_f64(const unsigned char *p) {
  uint64_t bits = tilewright_snapshot_u64(p);
  double x;
  memcpy(&x, &bits, sizeof x);
  return x;
}

#define TILEWRIGHT_SNAPSHOT_A UINT64_C(0x9e3779b97f4a7c15)
#define TILEWRIGHT_SNAPSHOT_B UINT64_C(0x6a09e667f3bcc909)
#define TILEWRIGHT_SNAPSHOT_C UINT64_C(0xbb67ae8584caa73b)
#define TILEWRIGHT_SNAPSHOT_D UINT64_C(0x3c6ef372fe94f82b)

static inline uint64_t tilewright_snapshot_mix(uint64_t x) {
  x *= TILEWRIGHT_SNAPSHOT_A;
  return x ^ x >> 32;
}

/* Compares the digest of a block, the last word of its lines of 64 bytes. */
static inline int tilewright_snapshot_sealed(const unsigned char *block, uint64_t bytes, uint64_t seed) {
  uint64_t a = seed ^ TILEWRIGHT_SNAPSHOT_B, b = seed ^ TILEWRIGHT_SNAPSHOT_C;
  uint64_t c = seed ^ TILEWRIGHT_SNAPSHOT_D, d = seed + bytes;
  for (;; block += 64, bytes -= 64) {
    a = tilewright_snapshot_mix(a ^ tilewright_snapshot_u64(block));
    b = tilewright_snapshot_mix(b ^ tilewright_snapshot_u64(block + 8));
    c = tilewright_snapshot_mix(c ^ tilewright_snapshot_u64(block + 16));
    d = tilewright_snapshot_mix(d ^ tilewright_snapshot_u64(block + 24));
    a = tilewright_snapshot_mix(a ^ tilewright_snapshot_u64(block + 32));
    b = tilewright_snapshot_mix(b ^ tilewright_snapshot_u64(block + 40));
    c = tilewright_snapshot_mix(c ^ tilewright_snapshot_u64(block + 48));
    if (bytes == 64) break;
    d = tilewright_snapshot_mix(d ^ tilewright_snapshot_u64(block + 56));
  }
  return a * TILEWRIGHT_SNAPSHOT_A + b * TILEWRIGHT_SNAPSHOT_B + c * TILEWRIGHT_SNAPSHOT_C +
             d * TILEWRIGHT_SNAPSHOT_D == tilewright_snapshot_u64(block + 56);
}

static inline uint64_t tilewright_snapshot_hash(uint64_t h, const char *text) {
  size_t length = strlen(text), n = length, k;
  const unsigned char *p = (const unsigned char *)text;
  uint64_t rest = (uint64_t)length << 56;
  for (; n >= 8; n -= 8, p += 8) h = tilewright_snapshot_mix(h ^ tilewright_snapshot_u64(p));
  for (k = 0; k < n; k++) rest |= (uint64_t)p[k] << (8 * k);
  return tilewright_snapshot_mix(h ^ rest);
}

/* The bytes of a block with n in front of its zeros. */
static inline uint64_t tilewright_snapshot_block(uint64_t n) { return (n + 8 + 63) / 64 * 64; }

/* Closes a snapshot; no other thread may use it. NULL is nothing. */
static inline void tilewright_snapshot_close(tilewright_snapshot *s) {
  uint32_t k;
  if (!s) return;
  for (k = 0; s->origins && k < s->origin_count; k++) free(s->origins[k].block);
  free(s->origins);
  if (s->data && s->copied) free((void *)(uintptr_t)s->data);
  if (s->data && !s->copied) munmap((void *)(uintptr_t)s->data, (size_t)s->size);
  if (s->fd >= 0) close(s->fd);
  free(s);
}

/* Reads or maps the file. */
static inline int tilewright_snapshot_load(tilewright_snapshot *s, const char *path, int copy) {
  struct stat info;
  s->fd = open(path, O_RDONLY);
  if (s->fd < 0 || fstat(s->fd, &info) || !S_ISREG(info.st_mode) || info.st_size < 64) return TILEWRIGHT_SNAPSHOT_STORE;
  s->size = (uint64_t)info.st_size;
  s->copied = copy;
  if (!copy) {
    void *data = mmap(NULL, (size_t)s->size, PROT_READ, MAP_SHARED, s->fd, 0);
    if (data == MAP_FAILED) return TILEWRIGHT_SNAPSHOT_STORE;
#ifdef MADV_HUGEPAGE /* Linux, with the extensions of its C library */
    if (s->size >= 32 << 20) (void)madvise(data, (size_t)s->size, MADV_HUGEPAGE);
#endif
    s->data = (const unsigned char *)data;
    return TILEWRIGHT_SNAPSHOT_OK;
  }
  unsigned char *data = (unsigned char *)malloc((size_t)s->size);
  s->data = data;
  for (uint64_t at = 0; data && at < s->size;) {
    ssize_t n = read(s->fd, data + at, (size_t)(s->size - at));
    if (n <= 0) return TILEWRIGHT_SNAPSHOT_DAMAGED;
    at += (uint64_t)n;
  }
  return data ? TILEWRIGHT_SNAPSHOT_OK : TILEWRIGHT_SNAPSHOT_STORE;
}

/* Reads the header. It is mapped memory: what is used is a copy whose digest is right. */
static inline int tilewright_snapshot_header(tilewright_snapshot *s, uint32_t *origin_index) {
  unsigned char h[64];
  memcpy(h, s->data, 64);
  if (memcmp(h, "TWSNAP07", 8)) return TILEWRIGHT_SNAPSHOT_STORE;
  if (!tilewright_snapshot_sealed(h, 64, 0) || tilewright_snapshot_u64(h + 8) != s->size) return TILEWRIGHT_SNAPSHOT_DAMAGED;
  s->revision = tilewright_snapshot_u64(h + 16);
  s->records = tilewright_snapshot_u32(h + 24);
  s->origin_count = tilewright_snapshot_u32(h + 32);
  *origin_index = tilewright_snapshot_u32(h + 36);
  s->texts = tilewright_snapshot_u32(h + 40); /* the seed */
  s->slot_lines = tilewright_snapshot_u32(h + 44);
  s->pilot_count = s->records / 4 + 1;
  s->slot_count = (uint64_t)s->records + s->records / 8 + 1;
  s->slots = 1 + s->pilot_count / 28 + 1;
  if (!s->slot_lines || (s->slots + s->slot_count * s->slot_lines) * 64 > s->size ||
      (uint64_t)*origin_index * 64 + 4 * (uint64_t)s->origin_count > s->size) return TILEWRIGHT_SNAPSHOT_DAMAGED;
  return TILEWRIGHT_SNAPSHOT_OK;
}

/* Copies an origin out of the file and keeps it if it has the given device, backend and
 * revision. One that is damaged stays bad, as its records are. */
static inline int tilewright_snapshot_take(tilewright_snapshot *s, uint32_t number, uint64_t at,
                                           const char *const want[3]) {
  tilewright_snapshot_origin *o = &s->origins[number];
  uint64_t length, whole, lengths[5], sum = 28;
  unsigned char *b;
  int k;
  if (at + 64 > s->size) return TILEWRIGHT_SNAPSHOT_OK;
  length = tilewright_snapshot_u32(s->data + at);
  whole = tilewright_snapshot_block(length);
  if (length < 28 || whole > s->size - at) return TILEWRIGHT_SNAPSHOT_OK;
  b = (unsigned char *)malloc((size_t)whole + 2);
  if (!b) return TILEWRIGHT_SNAPSHOT_STORE;
  o->block = (char *)b;
  memcpy(b, s->data + at, (size_t)whole);
  for (k = 0; k < 5; k++) sum += lengths[k] = tilewright_snapshot_u32(b + 8 + 4 * k);
  if (!tilewright_snapshot_sealed(b, whole, number) || sum != length) return TILEWRIGHT_SNAPSHOT_OK;
  o->digest = tilewright_snapshot_u64(b + whole - 8);
  o->state = TILEWRIGHT_SNAPSHOT_MINE;
  for (at = 28, k = 0; k < 3; at += lengths[k++])
    if (strlen(want[k]) != lengths[k] || memcmp(want[k], b + at, (size_t)lengths[k])) o->state = TILEWRIGHT_SNAPSHOT_OTHER;
  memmove(b + at + lengths[3] + 1, b + at + lengths[3], (size_t)lengths[4]);
  b[at + lengths[3]] = b[at + lengths[3] + 1 + lengths[4]] = 0;
  o->safe = (char *)b + at;
  o->tool = o->safe + lengths[3] + 1;
  if (o->state == TILEWRIGHT_SNAPSHOT_MINE) return TILEWRIGHT_SNAPSHOT_OK;
  free(o->block);
  o->block = NULL;
  return TILEWRIGHT_SNAPSHOT_OK;
}

/* Opens a snapshot for a device, a backend and a revision of its code generator. The
 * header is checked, a record when it is looked up. On failure *snapshot is NULL. */
static inline int tilewright_snapshot_open(const char *path, const char *device, const char *backend,
                                           const char *revision, int flags, tilewright_snapshot **snapshot) {
  tilewright_snapshot *s;
  const char *want[3];
  uint32_t k, index = 0;
  int status;
  want[0] = device;
  want[1] = backend;
  want[2] = revision;
  if (snapshot) *snapshot = NULL;
  if (!path || !device || !backend || !revision || !snapshot || (flags & ~TILEWRIGHT_SNAPSHOT_COPY))
    return TILEWRIGHT_SNAPSHOT_REQUEST;
  s = (tilewright_snapshot *)calloc(1, sizeof *s);
  if (!s) return TILEWRIGHT_SNAPSHOT_STORE;
  status = tilewright_snapshot_load(s, path, flags & TILEWRIGHT_SNAPSHOT_COPY);
  if (!status) status = tilewright_snapshot_header(s, &index);
  if (!status) {
    for (k = 0; k < 3; k++) s->texts = tilewright_snapshot_hash(s->texts, want[k]);
    s->origins = (tilewright_snapshot_origin *)calloc((size_t)s->origin_count + 1, sizeof *s->origins);
    if (!s->origins) status = TILEWRIGHT_SNAPSHOT_STORE;
  }
  for (k = 0; !status && k < s->origin_count; k++) {
    const uint64_t line = tilewright_snapshot_u32(s->data + (uint64_t)index * 64 + 4 * (uint64_t)k);
    status = tilewright_snapshot_take(s, k, line * 64, want);
  }
  if (status) {
    tilewright_snapshot_close(s);
    return status;
  }
  *snapshot = s;
  return TILEWRIGHT_SNAPSHOT_OK;
}

/* The number of records, of all devices. */
static inline uint32_t tilewright_snapshot_records(const tilewright_snapshot *s) { return s->records; }

/* The revision of the contents, which `-snapshot FILE@REV` pins: print it as %016x. */
static inline uint64_t tilewright_snapshot_revision(const tilewright_snapshot *s) { return s->revision; }

/* Whether the file is as long as when it was opened. A host that cannot rule out that
 * other programs truncate it asks before it uses a mapped snapshot. */
static inline int tilewright_snapshot_intact(const tilewright_snapshot *s) {
  struct stat info;
  return s->copied || (!fstat(s->fd, &info) && (uint64_t)info.st_size == s->size);
}

/* Reads a fingerprint of 64 hexadecimal digits; 0 if it is one. */
static inline int tilewright_snapshot_fingerprint(const char *text, unsigned char fingerprint[32]) {
  int k;
  for (k = 0; k < 64; k++) {
    const char c = text[k];
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10 : -1;
    if (digit < 0) return TILEWRIGHT_SNAPSHOT_REQUEST;
    fingerprint[k / 2] = (unsigned char)(k % 2 ? fingerprint[k / 2] | digit : digit << 4);
  }
  return text[64] ? TILEWRIGHT_SNAPSHOT_REQUEST : TILEWRIGHT_SNAPSHOT_OK;
}

/* Takes a record apart, whose digest is right. */
static inline int tilewright_snapshot_decode(const unsigned char *b, uint64_t length, tilewright_snapshot_answer *a) {
  const uint64_t plan = tilewright_snapshot_u32(b + 108), preset = tilewright_snapshot_u32(b + 112);
  const uint32_t flags = tilewright_snapshot_u32(b + 104), dims = flags >> 16;
  int k;
  if (116 + plan + preset + dims > length) return TILEWRIGHT_SNAPSHOT_DAMAGED;
  a->plan = (const char *)b + 116;
  a->plan_length = (size_t)plan;
  a->default_plan = a->plan + plan;
  a->default_length = (size_t)preset;
  a->dims = a->default_plan + preset;
  a->dims_length = dims;
  a->ties = b + 116 + plan + preset + dims;
  a->ties_length = (size_t)(length - 116 - plan - preset - dims);
  a->seconds = tilewright_snapshot_f64(b + 48);
  a->default_seconds = tilewright_snapshot_f64(b + 56);
  for (k = 0; k < 3; k++) a->speedup[k] = tilewright_snapshot_f64(b + 64 + 8 * k);
  a->regret = tilewright_snapshot_f64(b + 88);
  a->unix_seconds = (int64_t)tilewright_snapshot_u64(b + 96);
  a->checked = (int)(flags & 1);
  a->untimed = (int)(flags >> 1 & 1);
  a->provisional = (int)(flags >> 2 & 1);
  return TILEWRIGHT_SNAPSHOT_OK;
}

/* Whether a line of the index, by its number, is as it was published. */
static inline int tilewright_snapshot_line(const tilewright_snapshot *s, uint64_t line) {
  unsigned char copy[64];
  memcpy(copy, s->data + line * 64, 64);
  return tilewright_snapshot_sealed(copy, 64, line);
}

/* Finds the record of a fingerprint and copies it to a buffer, to which the answer
 * points: valid until the buffer is used again. 512 bytes are enough for most records;
 * SMALL says in answer->size how many are. On any other status answer is undefined. */
static inline int tilewright_snapshot_get(const tilewright_snapshot *s, const unsigned char fingerprint[32],
                                          void *buffer, size_t capacity, tilewright_snapshot_answer *answer) {
  unsigned char *copy = (unsigned char *)buffer;
  uint64_t hash, pilot, line, at, length, whole, n;
  uint32_t number;
  if (!s || !fingerprint || !answer || (!buffer && capacity)) return TILEWRIGHT_SNAPSHOT_REQUEST;
  hash = tilewright_snapshot_mix(s->texts ^ tilewright_snapshot_u64(fingerprint));
  n = (hash >> 32) * s->pilot_count >> 32;
  pilot = 1 + n / 28;
  at = pilot * 64 + n % 28 * 2;
  hash ^= (s->data[at] | (uint64_t)s->data[at + 1] << 8) * TILEWRIGHT_SNAPSHOT_B;
  n = (tilewright_snapshot_mix(hash) >> 32) * s->slot_count >> 32;
  line = s->slots + n * s->slot_lines;
  at = line * 64;
  length = tilewright_snapshot_u32(s->data + at);
  if (length == 0 || length == UINT32_MAX) { /* none, or one that is longer than a slot */
    unsigned char slot[64];
    memcpy(slot, s->data + at, 64);
    if (!tilewright_snapshot_sealed(slot, 64, line)) return TILEWRIGHT_SNAPSHOT_DAMAGED;
    at = tilewright_snapshot_u32(slot) ? (uint64_t)tilewright_snapshot_u32(slot + 4) * 64 : 0;
    if (at + 64 > s->size) return TILEWRIGHT_SNAPSHOT_DAMAGED;
    length = tilewright_snapshot_u32(s->data + at);
  }
  if (at) {
    whole = tilewright_snapshot_block(length);
    if (length < 116 || whole > s->size - at) return TILEWRIGHT_SNAPSHOT_DAMAGED;
    answer->size = (size_t)whole;
    if (whole > capacity) return TILEWRIGHT_SNAPSHOT_SMALL;
    memcpy(copy, s->data + at, (size_t)whole);
    number = tilewright_snapshot_u32(copy + 4);
    if (tilewright_snapshot_u32(copy) != length || number >= s->origin_count ||
        s->origins[number].state == TILEWRIGHT_SNAPSHOT_BAD ||
        !tilewright_snapshot_sealed(copy, whole, s->origins[number].digest)) return TILEWRIGHT_SNAPSHOT_DAMAGED;
    if (s->origins[number].state == TILEWRIGHT_SNAPSHOT_MINE && !memcmp(copy + 16, fingerprint, 32)) {
      answer->safe = s->origins[number].safe;
      answer->tool = s->origins[number].tool;
      return tilewright_snapshot_decode(copy, length, answer);
    }
  }
  return tilewright_snapshot_line(s, pilot) ? TILEWRIGHT_SNAPSHOT_MISS : TILEWRIGHT_SNAPSHOT_DAMAGED;
}

/* The next plan that is as fast as the winner: cuts it off the ties of an answer; 0 when
 * there is none left. */
static inline int tilewright_snapshot_tie(tilewright_snapshot_answer *a, const char **plan, size_t *length) {
  size_t n = 0, k = 0;
  int shift = 0;
  while (k < a->ties_length && shift < 28) {
    n |= (size_t)(a->ties[k] & 127) << shift;
    shift += 7;
    if (!(a->ties[k++] & 128)) break;
  }
  if (!k || n > a->ties_length - k) return 0;
  *plan = (const char *)a->ties + k;
  *length = n;
  a->ties += k + n;
  a->ties_length -= k + n;
  return 1;
}

/* A status in a few words. */
static inline const char *tilewright_snapshot_status_text(int status) {
  switch (status) {
    case TILEWRIGHT_SNAPSHOT_OK: return "ok";
    case TILEWRIGHT_SNAPSHOT_MISS: return "nothing is stored";
    case TILEWRIGHT_SNAPSHOT_REQUEST: return "an argument is NULL or no fingerprint";
    case TILEWRIGHT_SNAPSHOT_STORE: return "the file cannot be read or is no snapshot of this version: make one by tilewright cache publish";
    case TILEWRIGHT_SNAPSHOT_SMALL: return "the buffer is too small";
    case TILEWRIGHT_SNAPSHOT_DAMAGED: return "the snapshot is damaged: publish it again";
  }
  return "unknown status";
}

#undef TILEWRIGHT_SNAPSHOT_A
#undef TILEWRIGHT_SNAPSHOT_B
#undef TILEWRIGHT_SNAPSHOT_C
#undef TILEWRIGHT_SNAPSHOT_D
#endif

// What a driver implements. protocol.c has main and speaks with the benchmark:
// one command a line on standard input, one answer a line on standard output.
//
//   hello                  version TEXT
//   text FILE              ok                 its HLO, which drivers in C ignore
//   open OP SETS DIM...    ok N_IN            buffers for SETS runs, used in turn
//   load I FILE            ok                 input I of every set, raw, as the case stores it
//   check FILE             ok                 one run on the first set; its output
//   time N                 seconds S          of a run, the median of N
//   close                  ok
//
// What cannot be done is answered by "error TEXT".
#ifndef PROTOCOL_H
#define PROTOCOL_H
#include <stddef.h>

enum { max_in = 4 };

// Sizes of an operation's buffers, in bytes.
typedef struct {
  int n_in;
  size_t in[max_in], out;
} sizes;

// prepare makes op the operation that run does; NULL, or why that can't be.
const char *prepare(const char *op, const long *dims, int n_dims, sizes *s);
void run(void *const *in, void *out);
void finish(void); // undoes prepare
const char *version(void);
#endif

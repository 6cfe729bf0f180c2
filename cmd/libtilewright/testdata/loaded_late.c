/* Loads the library (argv[1]) when the host's handlers are in place: they keep running,
 * also for faults of the host. */
#define main host_main
#include "host.c"
#undef main

int main(int argc, char **argv) {
  DEMAND(argc == 2);
  for (size_t k = 0; k < sizeof kinds / sizeof *kinds; k++) handle(kinds[k], count);
  handle(SIGSEGV, fault);
  signals(1);
  void *lib = dlopen(argv[1], RTLD_NOW);
  DEMAND(lib);
  int (*fingerprint)(const char *, size_t, char **) =
      (int (*)(const char *, size_t, char **))dlsym(lib, "tilewright_fingerprint");
  void (*release)(void *) = (void (*)(void *))dlsym(lib, "tilewright_free");
  DEMAND(fingerprint && release);
  for (int k = 0; k < 3; k++) {
    char *t;
    DEMAND(fingerprint("HloModule", 9, &t) == TILEWRIGHT_INPUT);
    release(t);
    signals(1);
  }
  return 0;
}

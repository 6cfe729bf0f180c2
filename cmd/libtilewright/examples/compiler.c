/* A compiler that asks for the plans of a module: compiler SNAPSHOT MODULE [FUSION…] */
#include <stdio.h>
#include <stdlib.h>

#include "tilewright.h"

static char *read_file(const char *path, size_t *length) {
  FILE *f = fopen(path, "rb");
  if (!f) { perror(path); exit(1); }
  fseek(f, 0, SEEK_END);
  *length = (size_t)ftell(f);
  rewind(f);
  char *text = malloc(*length + 1);
  if (fread(text, 1, *length, f) != *length) exit(1);
  fclose(f);
  return text;
}

int main(int argc, char **argv) {
  if (argc < 3 || tilewright_abi() != TILEWRIGHT_ABI) return 2;
  tilewright_db db;
  char *text;
  if (tilewright_open(argv[1], "cpu", &db, &text)) {
    fprintf(stderr, "%s\n", text);
    tilewright_free(text);
    return 1;
  }
  size_t n;
  char *module = read_file(argv[2], &n);
  int status = tilewright_lookup(db, module, n, NULL, 0, &text);
  printf("%s: %s\n", tilewright_status_text(status), text);
  tilewright_free(text);
  free(module);
  return tilewright_close(db) || status;
}

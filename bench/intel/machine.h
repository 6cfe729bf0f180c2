// What the parts of the emulator know of each other.
#pragma once
#include "bochs.h"
#include "cpu/cpu.h"
#include "cpu/avx/amx.h"

#include <cstdint>
#include <string>

// What a run is asked for.
struct Options {
  bool permit_tiles = true; // whether arch_prctl grants AMX, as Linux 5.16 does
  bool keep = false;        // VZEROUPPER and TILERELEASE do nothing: a run that has to fail
  int processors = 1;       // that sched_getaffinity tells of
  std::string model = "sapphire_rapids", add, exclude;
};
extern Options options;

// machine.cc: the processor, and what Bochs asks of a computer around it.
void start_processor();
void run_processor(uint64_t entry, uint64_t stack);
void set_fs_base(uint64_t base);

// Addresses below this are the process's: physical, linear and host addresses are one.
constexpr uint64_t below = 1ull << 40;
void *map_at(uint64_t address, size_t length);

// threads.cc: system calls, and the threads that take turns on the processor.
void system_call();
void init_threads(uint64_t fs_base);

// audit.cc: what no program may do, and which instructions it executed.
extern bool tiles_permitted;
void audit_call(uint64_t flags);
int report(FILE *out);

// Ends the run with a fault of the program, and says at which instruction.
[[noreturn]] void fault(const char *what);

// What no program may do on a Xeon, and how many of the instructions that few processors have
// it executed. The linker leads calls of Bochs's functions here (--wrap, see build).
#include "machine.h"

#include "cpu/decoder/ia_opcodes.h"

#include <cstring>

bool tiles_permitted;

// ---- Instructions that are counted, by Bochs's names of what executes them.

struct Counter {
  const char *name;
  uint64_t count;
};
#define COUNTED(X) \
  X(LDTILECFG, 9LDTILECFG) X(TILELOADD, 17TILELOADD_TnnnMdq) X(TILESTORED, 18TILESTORED_MdqTnnn) \
  X(TILEZERO, 13TILEZERO_Tnnn) X(TILERELEASE, 11TILERELEASE) \
  X(TDPBSSD, 19TDPBSSD_TnnnTrmTreg) X(TDPBSUD, 19TDPBSUD_TnnnTrmTreg) \
  X(TDPBUSD, 19TDPBUSD_TnnnTrmTreg) X(TDPBUUD, 19TDPBUUD_TnnnTrmTreg) \
  X(TDPBF16PS, 21TDPBF16PS_TnnnTrmTreg) X(TDPFP16PS, 21TDPFP16PS_TnnnTrmTreg) \
  X(VDPBF16PS, 25VDPBF16PS_MASK_VpsHdqWdqR)

#define COUNTER(name, symbol) static Counter count_##name = {#name, 0};
COUNTED(COUNTER)

// tile_use is the fault of an instruction of AMX in a process that has no permission: Linux
// leaves IA32_XFD set, and the processor raises #NM.
static void tile_use(const char *name) {
  if (name[0] == 'V' || tiles_permitted) return;
  static char text[80];
  snprintf(text, sizeof text, "#NM: %s without permission to use tiles", name);
  fault(text);
}

static bool skipped();

#define WRAP(name, symbol) \
  extern "C" void __real__ZN8BX_CPU_C##symbol##EP15bxInstruction_c(bxInstruction_c *); \
  extern "C" void __wrap__ZN8BX_CPU_C##symbol##EP15bxInstruction_c(bxInstruction_c *i) { \
    count_##name.count++; \
    tile_use(#name); \
    if (&count_##name == &count_TILERELEASE && skipped()) return; \
    __real__ZN8BX_CPU_C##symbol##EP15bxInstruction_c(i); \
  }
COUNTED(WRAP)

// ---- Faults of the processor.

extern "C" void __wrap__ZN8BX_CPU_C9exceptionEjt(unsigned vector, Bit16u error) {
  static const char *names[] = {"#DE", "#DB", "NMI", "#BP", "#OF", "#BR", "#UD", "#NM",
                                "#DF", "9",   "#TS", "#NP", "#SS", "#GP", "#PF", "15",
                                "#MF", "#AC", "#MC", "#XM"};
  static char text[80];
  snprintf(text, sizeof text, "%s (%#x)", vector < 20 ? names[vector] : "exception", error);
  fault(text);
}

// ---- Rules between functions.

// broken counts what a program did that it may not do, and says where it did so first.
static uint64_t broken;
static void breaks(const char *rule) {
  if (broken++ == 0) fprintf(stderr, "machine: %s, before %#lx\n", rule, (uint64_t)BX_CPU(0)->prev_rip);
}

// dirty reports whether the upper half of a register that instructions of SSE have is not
// zero: on an Intel core each of these then waits for the register's old value, or worse.
static bool dirty() {
  uint64_t upper = 0;
  for (int r = 0; r < 16; r++)
    for (int q = 2; q < 8; q++) upper |= BX_CPU(0)->vmm[r].vmm64u(q);
  return upper != 0;
}

// Bochs executes the forms of AVX by the same functions.
#define AFTER_VECTORS(symbol, opcode) \
  extern "C" void __real__ZN8BX_CPU_C##symbol##EP15bxInstruction_c(bxInstruction_c *); \
  extern "C" void __wrap__ZN8BX_CPU_C##symbol##EP15bxInstruction_c(bxInstruction_c *i) { \
    if (i->getIaOpcode() == BX_IA_##opcode && dirty()) breaks("an instruction of SSE with upper halves in use"); \
    __real__ZN8BX_CPU_C##symbol##EP15bxInstruction_c(i); \
  }
AFTER_VECTORS(14MOVUPS_WpsVpsM, MOVUPS_WpsVps)
AFTER_VECTORS(13MOVSD_WsdVsdM, MOVSD_WsdVsd)
AFTER_VECTORS(13MOVSS_WssVssM, MOVSS_WssVss)

void audit_call(uint64_t flags) {
  BX_CPU_C *c = BX_CPU(0);
  if (flags & 0x400) breaks("a system call with the direction flag set");
  if ((c->mxcsr.mxcsr & ~0x3f) != 0x1f80) breaks("a system call with another MXCSR");
  if (c->amx && c->amx->tiles_configured()) breaks("a system call with tiles configured");
}

// skipped makes no-operations of what ends the use of vectors and tiles, if a run asks for it:
// then programs break rules, and report must say so.
static bool skipped() {
  if (!options.keep) return false;
  BX_CPU(0)->prev_rip = BX_CPU(0)->gen_reg[BX_64BIT_REG_RIP].rrx;
  return true;
}

#define END(symbol) \
  extern "C" void __real__ZN8BX_CPU_C##symbol##EP15bxInstruction_c(bxInstruction_c *); \
  extern "C" void __wrap__ZN8BX_CPU_C##symbol##EP15bxInstruction_c(bxInstruction_c *i) { \
    if (!skipped()) __real__ZN8BX_CPU_C##symbol##EP15bxInstruction_c(i); \
  }
END(10VZEROUPPER)

// report tells what was executed, and returns whether a rule was broken.
int report(FILE *out) {
  fprintf(out, "machine: %.1f M instructions", BX_CPU(0)->get_icount() / 1e6);
#define TELL(name, symbol) if (count_##name.count) fprintf(out, ", %lu " #name, count_##name.count);
  COUNTED(TELL)
  if (broken) fprintf(out, "; %lu times a rule was broken", broken);
  fputc('\n', out);
  return broken != 0;
}

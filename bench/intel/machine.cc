// A process of Linux on a Xeon that Bochs emulates, without a PC and without a kernel: Bochs's
// processor runs the code of a static program in user mode, at the addresses at which this
// process holds its memory; system calls are handed on to the Linux below (threads.cc).
//
//   machine [-refuse] [-keep] [-cpus N] [-model NAME] [-add FEATURES] [-exclude FEATURES] PROGRAM ARGS…
#include "machine.h"

#include "gui/paramtree.h"
#include "gui/siminterface.h"
#include "iodev/iodev.h"
#include "param_names.h"
#include "pc_system.h"

#include <csignal>
#include <cstring>
#include <elf.h>
#include <fcntl.h>
#include <map>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

Options options;

// ---- What Bochs asks of a computer around the processor.

BX_CPU_C bx_cpu;
BX_MEM_C bx_mem;
bx_pc_system_c bx_pc_system;
bx_devices_c bx_devices;
bx_debug_t bx_dbg;
Bit8u bx_cpu_count = 1;
bool simulate_xapic;
Bit32u apic_id_mask = 0xff;
logfunctions *genlog = new logfunctions, *pluginlog = genlog, *siminterface_log = genlog;
bx_gui_c *bx_gui;
bx_list_c *root_param;

logfunctions::logfunctions() {}
logfunctions::~logfunctions() {}
void logfunctions::put(const char *) {}
void logfunctions::put(const char *, const char *) {}
void logfunctions::info(const char *, ...) {}
void logfunctions::ldebug(const char *, ...) {}

static void tell(const char *format, va_list args) {
  vfprintf(stderr, format, args);
  fputc('\n', stderr);
}
void logfunctions::error(const char *format, ...) {
  va_list args;
  va_start(args, format);
  tell(format, args);
}
void logfunctions::panic(const char *format, ...) {
  va_list args;
  va_start(args, format);
  tell(format, args);
  fault("a panic of Bochs");
}
void logfunctions::fatal1(const char *format, ...) {
  va_list args;
  va_start(args, format);
  tell(format, args);
  fault("a fatal error of Bochs");
}

BX_MEMORY_STUB_C::BX_MEMORY_STUB_C() {}
BX_MEMORY_STUB_C::~BX_MEMORY_STUB_C() {}
BX_MEM_C::BX_MEM_C() {}
BX_MEM_C::~BX_MEM_C() {}
Bit8u *BX_MEM_C::getHostMemAddr(BX_CPU_C *, bx_phy_address a, unsigned) { return (Bit8u *)a; }
void BX_MEM_C::readPhysicalPage(BX_CPU_C *, bx_phy_address a, unsigned n, void *to) {
  memcpy(to, (void *)a, n);
}
void BX_MEM_C::writePhysicalPage(BX_CPU_C *, bx_phy_address a, unsigned n, void *from) {
  memcpy((void *)a, from, n);
}
bool BX_MEMORY_STUB_C::is_monitor(bx_phy_address, unsigned) { return false; }
void BX_MEMORY_STUB_C::check_monitor(bx_phy_address, unsigned) {}
Bit64u BX_MEMORY_STUB_C::get_memory_len() { return below; }
bool BX_MEM_C::dbg_fetch_mem(BX_CPU_C *, bx_phy_address, unsigned, Bit8u *) { return false; }

bx_pc_system_c::bx_pc_system_c() {
  a20_mask = ~0ull;
  currCountdown = currCountdownPeriod = 0x7fffffff;
}
void bx_pc_system_c::countdownEvent() { currCountdown = currCountdownPeriod; }
int bx_pc_system_c::register_timer_ticks(
    void *, bx_timer_handler_t, Bit64u, bool, bool, const char *) { return 0; }
void bx_pc_system_c::activate_timer_ticks(unsigned, Bit64u, bool) {}
void bx_pc_system_c::deactivate_timer(unsigned) {}
bool bx_pc_system_c::get_enable_a20() { return true; }
int bx_pc_system_c::Reset(unsigned) { fault("a reset"); }
void bx_pc_system_c::invlpg(bx_address) {}

bx_devices_c::bx_devices_c() {}
bx_devices_c::~bx_devices_c() {}
Bit32u bx_pci_device_c::pci_read_handler(Bit8u, unsigned) { return 0; }
Bit32u bx_devices_c::inp(Bit16u, unsigned) { return ~0u; }
// The only port there is: the code at the target of SYSCALL writes to it.
void bx_devices_c::outp(Bit16u, Bit32u, unsigned) { system_call(); }

// The settings that the processor reads.
class Settings : public bx_simulator_interface_c {
  static std::string last(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
  }
public:
  bx_param_enum_c *get_param_enum(const char *, bx_param_c *) override {
    static const char *names[] = {
#define bx_define_cpudb(model) #model,
#include "cpudb.h"
#undef bx_define_cpudb
      nullptr};
    unsigned n = 0;
    while (names[n] && options.model != names[n]) n++;
    if (!names[n]) fault("there is no such model");
    return new bx_param_enum_c(nullptr, "model", "", "", names, n, 0);
  }
  bx_param_num_c *get_param_num(const char *, bx_param_c *) override {
    return new bx_param_num_c(nullptr, "number", "", "", 0, 1 << 30, 1);
  }
  bx_param_bool_c *get_param_bool(const char *, bx_param_c *) override {
    return new bx_param_bool_c(nullptr, "flag", "", "", 0);
  }
  bx_param_string_c *get_param_string(const char *name, bx_param_c *) override {
    std::string text;
    if (last(name) == "add_features") text = options.add;
    if (last(name) == "exclude_features") text = options.exclude;
    return new bx_param_string_c(nullptr, "text", "", "", text.c_str(), 4096);
  }
};
bx_simulator_interface_c *SIM = new Settings;

// ---- The state in which Linux leaves a processor to a program.

void *map_at(uint64_t address, size_t length) {
  void *p = mmap((void *)address, length, PROT_READ | PROT_WRITE,
                 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE | MAP_NORESERVE, -1, 0);
  if (p == MAP_FAILED) {
    perror("mmap");
    exit(2);
  }
  return p;
}

// make_pages maps each address to itself, in pages of 1 GiB, and returns the highest table.
static uint64_t make_pages() {
  constexpr uint64_t at = 0x1000000000, present = 7, large = 0x80, gib = 1 << 30;
  auto tables = (uint64_t(*)[512])map_at(at, 3 << 12);
  for (int k = 0; k < 2; k++) {
    tables[0][k] = (uint64_t)tables[1 + k] | present;
    for (uint64_t n = 0; n < 512; n++)
      tables[1 + k][n] = (512 * k + n) * gib | present | large;
  }
  return at;
}

// make_entry writes the code that SYSCALL leads to: OUT 0, AL; SYSRET.
static uint64_t make_entry() {
  constexpr uint64_t at = 0x1000010000;
  memcpy(map_at(at, 1 << 12), "\xe6\x00\x48\x0f\x07", 5);
  return at;
}

static void set_segment(unsigned n, unsigned selector, unsigned type, bool code) {
  bx_segment_reg_t &s = BX_CPU(0)->sregs[n];
  s.selector.value = selector;
  s.selector.index = selector >> 3;
  s.selector.ti = 0;
  s.selector.rpl = 3;
  s.cache.valid = SegValidCache | SegAccessROK | SegAccessWOK | SegAccessROK4G | SegAccessWOK4G;
  s.cache.p = s.cache.segment = true;
  s.cache.dpl = 3;
  s.cache.type = type;
  s.cache.u.segment.base = 0;
  s.cache.u.segment.limit_scaled = ~0u;
  s.cache.u.segment.g = true;
  s.cache.u.segment.d_b = !code;
  s.cache.u.segment.l = code;
}

void set_fs_base(uint64_t base) { BX_CPU(0)->sregs[BX_SEG_REG_FS].cache.u.segment.base = base; }

// has_tiles reports whether the model has AMX.
static bool has_tiles() { return BX_CPU(0)->amx != nullptr; }

void start_processor() {
  BX_CPU_C *c = BX_CPU(0);
  c->initialize();
  c->reset(BX_RESET_HARDWARE);
  c->cr0.set32(0x80050033);  // paging, write protection, numeric errors, protection
  c->cr4.set32(0x000406f0);  // physical address extension, SSE, XSAVE
  c->efer.set32(0x00000501); // long mode, SYSCALL
  c->xcr0.set32(has_tiles() ? 0x600e7 : 0xe7);
  c->cr3 = make_pages();
  c->msr.star = 0x0023001000000000;
  c->msr.lstar = make_entry();
  c->msr.fmask = 0x700;
  set_segment(BX_SEG_REG_CS, 0x33, BX_CODE_EXEC_READ_ACCESSED, true);
  for (unsigned s : {BX_SEG_REG_SS, BX_SEG_REG_DS, BX_SEG_REG_ES, BX_SEG_REG_FS, BX_SEG_REG_GS})
    set_segment(s, 0x2b, BX_DATA_READ_WRITE_ACCESSED, false);
  c->setEFlags(0x202);
  c->mxcsr.mxcsr = 0x1f80;
  c->TLB_flush();
  c->handleAlignmentCheck();
  c->handleCpuModeChange();
  c->handleFpuMmxModeChange();
  c->handleSseModeChange();
  c->handleAvxModeChange();
}

void run_processor(uint64_t entry, uint64_t stack) {
  BX_CPU_C *c = BX_CPU(0);
  c->gen_reg[BX_64BIT_REG_RSP].rrx = c->prev_rsp = stack;
  c->gen_reg[BX_64BIT_REG_RIP].rrx = c->prev_rip = entry;
  for (;;) c->cpu_loop();
}

// ---- The program.

// load copies the segments of a static program to their addresses and returns where it begins.
static uint64_t load(const char *path) {
  int file = open(path, O_RDONLY);
  Elf64_Ehdr head;
  if (pread(file, &head, sizeof head, 0) != sizeof head || head.e_type != ET_EXEC) {
    fprintf(stderr, "%s is not a static program\n", path);
    exit(2);
  }
  for (int k = 0; k < head.e_phnum; k++) {
    Elf64_Phdr part;
    pread(file, &part, sizeof part, head.e_phoff + k * sizeof part);
    if (part.p_type != PT_LOAD || part.p_memsz == 0) continue;
    uint64_t from = part.p_vaddr & ~0xfffull;
    map_at(from, (part.p_vaddr + part.p_memsz - from + 0xfff) & ~0xfffull);
    for (uint64_t n = 0; n < part.p_filesz;) {
      ssize_t got = pread(file, (char *)part.p_vaddr + n, part.p_filesz - n, part.p_offset + n);
      if (got <= 0) exit(2);
      n += got;
    }
  }
  close(file);
  return head.e_entry;
}

// make_stack lays out what a program finds at its stack: arguments, environment, and the
// vector of what the kernel tells; there is no vDSO in it.
static uint64_t make_stack(int argc, char **argv, char **envp) {
  constexpr uint64_t at = 0x1100000000, size = 8 << 20;
  auto top = (char *)map_at(at, size) + size;
  auto place = [&](const void *from, size_t n) {
    top -= (n + 15) & ~15ull;
    memcpy(top, from, n);
    return (uint64_t)top;
  };
  std::vector<uint64_t> words{(uint64_t)argc};
  for (int k = 0; k < argc; k++) words.push_back(place(argv[k], strlen(argv[k]) + 1));
  words.push_back(0);
  for (; *envp; envp++) words.push_back(place(*envp, strlen(*envp) + 1));
  words.push_back(0);
  uint64_t random = place("sixteen bytes...", 16);
  for (uint64_t x : {uint64_t(AT_PAGESZ), uint64_t(4096), uint64_t(AT_RANDOM), random, 0ul, 0ul})
    words.push_back(x);
  top = (char *)((uint64_t)top & ~63ull);
  return place(words.data(), 8 * words.size() + 64 & ~15ull);
}

void fault(const char *what) {
  BX_CPU_C *c = BX_CPU(0);
  uint64_t at = c->prev_rip;
  fprintf(stderr, "machine: %s at %#lx:", what, at);
  if (at > 4096 && at < below)
    for (int k = 0; k < 15; k++) fprintf(stderr, " %02x", ((Bit8u *)at)[k]);
  static const char *names[] = {"rax", "rcx", "rdx", "rbx", "rsp", "rbp", "rsi", "rdi"};
  fputc('\n', stderr);
  for (int k = 0; k < 16; k++) {
    if (k < 8) fprintf(stderr, " %s=%lx", names[k], (uint64_t)c->gen_reg[k].rrx);
    else fprintf(stderr, " r%d=%lx", k, (uint64_t)c->gen_reg[k].rrx);
  }
  fputc('\n', stderr);
  _exit(125);
}

// outside is where the program touched memory that it does not have.
static void outside(int, siginfo_t *info, void *) {
  static char text[80];
  snprintf(text, sizeof text, "no access to address %p", info->si_addr);
  fault(text);
}

static int usage() {
  fputs("machine [-refuse] [-keep] [-cpus N] [-model NAME] [-add FEATURES] [-exclude FEATURES] "
        "PROGRAM ARGS...\n", stderr);
  return 2;
}

int main(int argc, char **argv, char **envp) {
  int k = 1;
  for (; k < argc && argv[k][0] == '-'; k++) {
    std::string flag = argv[k];
    if (flag == "-refuse" || flag == "-keep") {
      (flag == "-keep" ? options.keep : options.permit_tiles) = flag == "-keep";
      continue;
    }
    if (k + 1 == argc) return usage();
    std::string value = argv[++k];
    if (flag == "-cpus") options.processors = atoi(value.c_str());
    else if (flag == "-model") options.model = value;
    else if (flag == "-add") options.add = value;
    else if (flag == "-exclude") options.exclude = value;
    else return usage();
  }
  if (k >= argc) return usage();
  struct sigaction action = {};
  action.sa_sigaction = outside;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  sigaction(SIGSEGV, &action, nullptr);
  sigaction(SIGBUS, &action, nullptr);
  uint64_t entry = load(argv[k]);
  uint64_t stack = make_stack(argc - k, argv + k, envp);
  start_processor();
  init_threads(0);
  run_processor(entry, stack);
}

// The system calls of a program, most of them handed on as they are, and its threads, which
// take turns on the one processor: another one runs when one waits, sleeps or yields.
#include "machine.h"

#include <cerrno>
#include <csignal>
#include <cstring>
#include <linux/futex.h>
#include <poll.h>
#include <sched.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>
#include <vector>

// A Thread is what the processor holds of a thread that does not run.
struct Thread {
  int id = 0;
  bool waits = false, ended = false;
  uint32_t *on = nullptr;  // the word that it waits for
  uint64_t until = ~0ull;  // ns, when it goes on by itself
  long late = 0;           // what its call returns then
  uint64_t registers[16], flags, next, fs_base;
  Bit32u mxcsr;
  uint64_t masks[8];
  bx_zmm_reg_t vectors[32];
};

static std::vector<Thread *> threads;
static Thread *running;

void init_threads(uint64_t fs_base) {
  running = new Thread;
  running->id = getpid();
  running->fs_base = fs_base;
  threads.push_back(running);
}

static uint64_t &reg(int n) { return (uint64_t &)BX_CPU(0)->gen_reg[n].rrx; }
enum { rax, rcx, rdx, rbx, rsp, rbp, rsi, rdi, r8, r9, r10, r11 };

static void save(Thread *t) {
  BX_CPU_C *c = BX_CPU(0);
  for (int k = 0; k < 16; k++) t->registers[k] = reg(k);
  t->mxcsr = c->mxcsr.mxcsr;
  for (int k = 0; k < 8; k++) t->masks[k] = c->opmask[k].rrx;
  memcpy(t->vectors, c->vmm, sizeof t->vectors);
}

static void restore(Thread *t) {
  BX_CPU_C *c = BX_CPU(0);
  for (int k = 0; k < 16; k++) reg(k) = t->registers[k];
  c->mxcsr.mxcsr = t->mxcsr;
  for (int k = 0; k < 8; k++) c->opmask[k].rrx = t->masks[k];
  memcpy((void *)c->vmm, t->vectors, sizeof t->vectors);
  set_fs_base(t->fs_base);
  running = t;
}

static uint64_t now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return t.tv_sec * 1000000000ull + t.tv_nsec;
}

// runnable is the next thread after this one that can go on, if there is one.
static Thread *runnable() {
  size_t at = 0, n = threads.size();
  while (threads[at] != running) at++;
  uint64_t time = now();
  for (size_t k = 1; k <= n; k++) {
    Thread *t = threads[(at + k) % n];
    if (t->waits && t->until <= time) {
      t->waits = false;
      t->on = nullptr;
      t->registers[rax] = t->late;
    }
    if (!t->waits && !t->ended) return t;
  }
  return nullptr;
}

// turn gives the processor to the next thread that can go on, and waits until there is one.
static void turn() {
  save(running);
  for (;;) {
    if (Thread *t = runnable()) return restore(t);
    uint64_t first = ~0ull;
    for (Thread *t : threads)
      if (!t->ended && t->until < first) first = t->until;
    if (first == ~0ull) fault("every thread waits");
    uint64_t time = now();
    if (first > time) usleep((first - time) / 1000 + 1);
  }
}

static void wait(uint32_t *on, uint64_t until, long late) {
  running->waits = true;
  running->on = on;
  running->until = until;
  running->late = late;
  reg(rax) = 0;
  turn();
}

static uint64_t after(const timespec *t) {
  return t ? now() + t->tv_sec * 1000000000ull + t->tv_nsec : ~0ull;
}

// wake lets so many of the threads that wait for a word go on.
static long wake(uint32_t *on, uint64_t most) {
  long n = 0;
  for (Thread *t : threads)
    if (t->waits && t->on == on && (uint64_t)n < most) {
      t->waits = false;
      t->on = nullptr;
      n++;
    }
  return n;
}

// A Call is what a thread asks for; a handler returns the answer, or later when it has
// answered by itself.
struct Call { uint64_t number, a[6]; };
constexpr long later = 1l << 62;

static long futex(const Call &c) {
  auto on = (uint32_t *)c.a[0];
  switch (c.a[1] & FUTEX_CMD_MASK) {
  case FUTEX_WAIT:
    if (*on != (uint32_t)c.a[2]) return -EAGAIN;
    wait(on, after((timespec *)c.a[3]), -ETIMEDOUT);
    return later;
  case FUTEX_WAKE:
    return wake(on, (uint32_t)c.a[2]);
  }
  return -ENOSYS;
}

// clone makes a thread, whose stack is given; processes are refused.
static long clone(const Call &c) {
  if (!(c.a[0] & CLONE_THREAD)) return -EPERM;
  auto t = new Thread(*running);
  threads.push_back(t);
  save(t);
  t->id = running->id + threads.size();
  t->registers[rax] = 0;
  t->registers[rsp] = c.a[1];
  if (c.a[0] & CLONE_SETTLS) t->fs_base = c.a[4];
  return t->id;
}

static long end_thread() {
  running->ended = running->waits = true;
  running->until = ~0ull;
  turn();
  return later;
}

[[noreturn]] static void end(int status) {
  int wrong = report(stderr);
  _exit(wrong && status == 0 ? 124 : status);
}

// map chooses an address that the processor has, where the program asks for none.
static long map(Call c) {
  static uint64_t next = 0x2000000000;
  if (c.a[3] & MAP_FIXED)
    return c.a[0] + c.a[1] <= below ? syscall(SYS_mmap, c.a[0], c.a[1], c.a[2], c.a[3], c.a[4], c.a[5]) : -ENOMEM;
  uint64_t size = (c.a[1] + 0xfff) & ~0xfffull;
  for (uint64_t hint = c.a[0];; hint = 0) {
    if (!hint || hint + size > below) {
      hint = next;
      next += size + 0x10000;
    }
    void *p = mmap((void *)hint, c.a[1], c.a[2], c.a[3] | MAP_FIXED_NOREPLACE, c.a[4], c.a[5]);
    if (p != MAP_FAILED) return (long)p;
    if (errno != EEXIST) return -errno;
  }
}

static long prctl(const Call &c) {
  constexpr uint64_t set_fs = 0x1002, supported = 0x1021, permit = 0x1023, tile_data = 18;
  const bool tiles = options.permit_tiles && BX_CPU(0)->amx;
  if (c.a[0] == set_fs) {
    running->fs_base = c.a[1];
    set_fs_base(c.a[1]);
    return 0;
  }
  if (c.a[0] == supported) {
    *(uint64_t *)c.a[1] = 0xe7 | (tiles ? 3 << 17 : 0);
    return 0;
  }
  if (c.a[0] != permit || c.a[1] != tile_data) return -EINVAL;
  if (!tiles) return -EOPNOTSUPP;
  tiles_permitted = true;
  return 0;
}

static long poll_events(const Call &c) {
  long n = syscall(SYS_epoll_pwait, c.a[0], c.a[1], c.a[2], 0, nullptr, 0);
  if (n || !c.a[3]) return n < 0 ? -errno : n;
  // Nobody is told of events while others run: the program asks again.
  uint64_t pause = 1000000;
  if ((int)c.a[3] > 0 && (int)c.a[3] * 1000000ull < pause) pause = (int)c.a[3] * 1000000ull;
  wait(nullptr, now() + pause, 0);
  return later;
}

// hidden are files that tell of the processor below.
static bool hidden(const char *path) {
  return !strncmp(path, "/sys/", 5) || !strncmp(path, "/proc/", 6);
}

static long answer(const Call &c) {
  const uint64_t *a = c.a;
  switch (c.number) {
  case SYS_mmap: return map(c);
  case SYS_clone: return clone(c);
  case SYS_futex: return futex(c);
  case SYS_arch_prctl: return prctl(c);
  case SYS_gettid: return running->id;
  case SYS_exit: return end_thread();
  case SYS_exit_group: end(a[0]);
  case SYS_epoll_pwait: return poll_events(c);
  case SYS_nanosleep: wait(nullptr, after((timespec *)a[0]), 0); return later;
  case SYS_sched_yield: reg(rax) = 0; turn(); return later;
  case SYS_openat:
    if (hidden((const char *)a[1])) return -ENOENT;
    break;
  case SYS_sched_getaffinity:
    memset((void *)a[2], 0, a[1]);
    *(uint64_t *)a[2] = (1ull << options.processors) - 1;
    return 8;
  case SYS_rt_sigaction:
    if (a[2]) memset((void *)a[2], 0, 32);
    return 0;
  case SYS_sched_setaffinity: case SYS_rt_sigprocmask: case SYS_sigaltstack: case SYS_rseq:
    return 0;
  case SYS_tgkill: case SYS_tkill: case SYS_kill:
    if (a[c.number == SYS_tgkill ? 2 : 1] == SIGABRT) end(134);
    return 0;
  case SYS_clone3: case SYS_execve: case SYS_fork: case SYS_vfork: case SYS_timer_create:
  case SYS_setitimer:
    return -EPERM;
  }
  long n = syscall(c.number, a[0], a[1], a[2], a[3], a[4], a[5]);
  return n < 0 ? -errno : n;
}

void system_call() {
  audit_call(reg(r11));
  long n = answer({reg(rax), {reg(rdi), reg(rsi), reg(rdx), reg(r10), reg(r8), reg(r9)}});
  if (n != later) reg(rax) = n;
}

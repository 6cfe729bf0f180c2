// mlir: WORKLOAD.mlir TIMES.tsv [BUDGET_MS [ANSWERS.tsv]]
//
// Times stock MLIR on the chains that `bench/symbolic -mlir`
// exports: a line "P id n", then for each of n maps "M affine_map<..>" and
// "V lo hi .." with the bounds of its dimensions and symbols. Maps are parsed
// before, and everything is warm (expressions found uniqued). Nanoseconds of a
// run, the median of 11 batches:
//
//   compose   AffineMap::compose along the chain
//   simplify  the same with simplifyAffineMap after every step, no domain
//   ranged    the same with a range rule: a mod or floordiv whose operand stays
//             in one period by its bounds goes, to a fixpoint
//
// Bounds are those of getBoundForAffineExpr but for remainders: MLIR 19 takes lo mod c
// for the lower bound of x mod c, x in [lo, hi], even where [lo, hi] is in several
// periods, and says [17, 18] of d0 mod 19 for d0 in [-2, 30]. With that one nested
// chain in ten came out wrong, such as (d0 mod 19) mod 14, which became d0 mod 19 - 14.
//
// ANSWERS.tsv gets a line a chain: its id, then the results as ranged makes them.
// The symbols of a later map come before those of earlier ones. A budget of 0
// times nothing.
#include "mlir/AsmParser/AsmParser.h"
#include "mlir/IR/AffineExpr.h"
#include "mlir/IR/AffineMap.h"
#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/MLIRContext.h"
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <optional>
#include <sstream>
#include <string>
#include <vector>
using namespace mlir;

using Bounds = std::vector<std::optional<int64_t>>;

struct BoundedMap {
  AffineMap map;
  Bounds lo, hi; // dimensions, then symbols
};

struct Chain {
  std::string id;
  std::vector<BoundedMap> maps;
};

struct Box {
  Bounds lo, hi;
  unsigned dims, symbols;
};

static double now() {
  return std::chrono::duration<double, std::nano>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

template <class F> static double measure(double budget, F run) {
  if (budget <= 0)
    return 0;
  const int batches = 11;
  double start = now();
  run();
  double once = now() - start + 1;
  int n = std::clamp<int>(budget / batches / once, 1, 200000), k = once > 2e8 ? 1 : batches;
  std::vector<double> mean;
  for (int b = 0; b < k; b++) {
    start = now();
    for (int i = 0; i < n; i++)
      run();
    mean.push_back((now() - start) / n);
  }
  std::sort(mean.begin(), mean.end());
  return mean[k / 2];
}

static AffineMap compose(const Chain &c) {
  AffineMap r = c.maps[0].map;
  for (size_t i = 1; i < c.maps.size(); i++)
    r = c.maps[i].map.compose(r);
  return r;
}

static AffineMap simplify(const Chain &c) {
  AffineMap r = simplifyAffineMap(c.maps[0].map);
  for (size_t i = 1; i < c.maps.size(); i++)
    r = simplifyAffineMap(c.maps[i].map.compose(r));
  return r;
}

static int64_t floorDiv(int64_t a, int64_t b) { return a / b - (a % b != 0 && (a < 0) != (b < 0)); }

// bound is the least or the greatest value of e by the ranges of variables, if known.
static std::optional<int64_t> bound(AffineExpr e, const Box &b, bool upper) {
  if (auto c = dyn_cast<AffineConstantExpr>(e))
    return c.getValue();
  if (auto d = dyn_cast<AffineDimExpr>(e))
    return (upper ? b.hi : b.lo)[d.getPosition()];
  if (auto s = dyn_cast<AffineSymbolExpr>(e))
    return (upper ? b.hi : b.lo)[b.dims + s.getPosition()];
  auto bin = cast<AffineBinaryOpExpr>(e);
  AffineExpr l = bin.getLHS(), r = bin.getRHS();
  if (e.getKind() == AffineExprKind::Add) {
    auto x = bound(l, b, upper), y = bound(r, b, upper);
    return x && y ? std::optional<int64_t>(*x + *y) : std::nullopt;
  }
  auto c = dyn_cast<AffineConstantExpr>(r);
  if (!c || (e.getKind() != AffineExprKind::Mul && c.getValue() <= 0))
    return std::nullopt;
  int64_t k = c.getValue();
  auto x = bound(l, b, e.getKind() == AffineExprKind::Mul && k < 0 ? !upper : upper);
  if (e.getKind() == AffineExprKind::Mod) {
    auto lo = bound(l, b, false), hi = bound(l, b, true);
    if (lo && hi && floorDiv(*lo, k) == floorDiv(*hi, k))
      return *x - floorDiv(*x, k) * k;
    return upper ? k - 1 : 0;
  }
  if (!x)
    return x;
  if (e.getKind() == AffineExprKind::Mul)
    return *x * k;
  return e.getKind() == AffineExprKind::FloorDiv ? floorDiv(*x, k) : -floorDiv(-*x, k);
}

// dropQuotients applies the range rule from the leaves up.
static AffineExpr dropQuotients(AffineExpr e, const Box &b) {
  auto bin = dyn_cast<AffineBinaryOpExpr>(e);
  if (!bin)
    return e;
  AffineExpr l = dropQuotients(bin.getLHS(), b), r = dropQuotients(bin.getRHS(), b);
  auto c = dyn_cast<AffineConstantExpr>(r);
  bool mod = e.getKind() == AffineExprKind::Mod;
  if (c && c.getValue() > 0 && (mod || e.getKind() == AffineExprKind::FloorDiv)) {
    auto lo = bound(l, b, false);
    auto hi = bound(l, b, true);
    if (lo && hi && floorDiv(*lo, c.getValue()) == floorDiv(*hi, c.getValue())) {
      int64_t q = floorDiv(*lo, c.getValue());
      return mod ? l - q * c.getValue() : getAffineConstantExpr(q, e.getContext());
    }
  }
  return getAffineBinaryOpExpr(e.getKind(), l, r);
}

static AffineMap toFixpoint(AffineMap m, const Box &b) {
  for (int i = 0; i < 6; i++) {
    SmallVector<AffineExpr, 8> results;
    for (AffineExpr e : m.getResults())
      results.push_back(simplifyAffineExpr(dropQuotients(e, b), m.getNumDims(), m.getNumSymbols()));
    AffineMap n = AffineMap::get(m.getNumDims(), m.getNumSymbols(), results, m.getContext());
    if (n == m)
      break;
    m = n;
  }
  return m;
}

// append puts the symbols of m before those of the maps so far, as compose does.
static void append(Bounds &all, unsigned dims, const Bounds &of, unsigned ofDims) {
  Bounds out(all.begin(), all.begin() + dims);
  out.insert(out.end(), of.begin() + ofDims, of.end());
  out.insert(out.end(), all.begin() + dims, all.end());
  all = out;
}

static AffineMap ranged(const Chain &c) {
  const BoundedMap &first = c.maps[0];
  Box b{first.lo, first.hi, first.map.getNumDims(), first.map.getNumSymbols()};
  AffineMap r = toFixpoint(first.map, b);
  for (size_t i = 1; i < c.maps.size(); i++) {
    const BoundedMap &m = c.maps[i];
    r = m.map.compose(r);
    append(b.lo, b.dims, m.lo, m.map.getNumDims());
    append(b.hi, b.dims, m.hi, m.map.getNumDims());
    b.symbols = r.getNumSymbols();
    r = toFixpoint(r, b);
  }
  return r;
}

static std::string answer(const Chain &c) {
  std::string line = c.id;
  llvm::raw_string_ostream out(line);
  for (AffineExpr e : ranged(c).getResults()) {
    out << "\t";
    e.print(out);
  }
  return line;
}

static std::vector<Chain> load(const char *path, MLIRContext &ctx) {
  std::ifstream in(path);
  std::vector<Chain> chains;
  for (std::string line; std::getline(in, line);) {
    std::istringstream rest(line.size() > 1 ? line.substr(2) : "");
    if (line[0] == 'P') {
      chains.emplace_back();
      rest >> chains.back().id;
    } else if (line[0] == 'M') {
      auto attr = parseAttribute(line.substr(2), &ctx);
      if (!attr) {
        std::fprintf(stderr, "mlir: not a map: %s\n", line.c_str());
        std::exit(1);
      }
      chains.back().maps.push_back({llvm::cast<AffineMapAttr>(attr).getValue(), {}, {}});
    } else if (line[0] == 'V') {
      BoundedMap &m = chains.back().maps.back();
      for (int64_t lo, hi; rest >> lo >> hi;) {
        m.lo.push_back(lo);
        m.hi.push_back(hi);
      }
    }
  }
  return chains;
}

int main(int argc, char **argv) {
  if (argc < 3) {
    std::fprintf(stderr, "usage: mlir WORKLOAD.mlir TIMES.tsv [BUDGET_MS [ANSWERS.tsv]]\n");
    return 2;
  }
  double budget = (argc > 3 ? atof(argv[3]) : 30) * 1e6;
  MLIRContext ctx(MLIRContext::Threading::DISABLED);
  std::vector<Chain> chains = load(argv[1], ctx);
  std::FILE *out = std::fopen(argv[2], "w");
  if (!out) {
    std::fprintf(stderr, "mlir: cannot open %s\n", argv[2]);
    return 1;
  }
  std::ofstream answers(argc > 4 ? argv[4] : "/dev/null");
  std::fprintf(out, "id\tcompose\tsimplify\tranged\n");
  for (const Chain &c : chains) {
    answers << answer(c) << "\n";
    double a = measure(budget, [&] { compose(c); });
    double b = measure(budget, [&] { simplify(c); });
    double d = measure(budget, [&] { ranged(c); });
    std::fprintf(out, "%s\t%.0f\t%.0f\t%.0f\n", c.id.c_str(), a, b, d);
  }
  return std::fclose(out) != 0;
}

# Thin: every target is one command a person could type.
STATICCHECK := honnef.co/go/tools/cmd/staticcheck@v0.8.2
BENCHSTAT   := golang.org/x/perf/cmd/benchstat@v0.0.0-20260908200009-22c9c6c9d4da
BENCH       ?= .
COUNT       ?= 6
BASE        ?= HEAD~1
PACKAGES    ?= ./...

WORKLOAD    ?= testdata/bench/symbolic.jsonl
ROUNDS      ?= 3
LLVM        ?= $(lastword $(sort $(wildcard /usr/lib/llvm-*/include/mlir/IR/AffineMap.h)))
LLVM_ROOT    = $(LLVM:/include/mlir/IR/AffineMap.h=)

.PHONY: lib bench-lookup attack judge oracle flips cuda cuda-sim check test race fuzz generate bench bench-symbolic bench-isl bench-mlir bench-rivals judge-symbolic judge-gpu judge-intel judge-foreign judge-triton check-symbolic bench-peers bench-compare models models-corpus models-torch operations python-torch report

check: ; gofmt -l . | (! grep .) && go vet ./... && go run $(STATICCHECK) ./...
test:  ; go test ./...
race:  ; go test -race ./tuner/... ./cache/... ./kernels/...
fuzz:  ; .ci/fuzz 30s
lib: ; cmd/libtilewright/build
attack: ; go run ./bench/attack $(if $(QUICK),-quick) $(ATTACK)
generate: ; go generate ./kernels/cpu/internal/gemm ./kernels/cuda/gen
bench: ; go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES)
report: ; go run ./cmd/tilewright tune -report report.html testdata/hlo/*.hlo

# The program that drives NVIDIA GPUs. It needs a C compiler to build, and libc
# to start; docs/gpu.md says how to build against a toolkit instead.
TOOLKIT_FREE = kernels/cuda/toolkit-free
cuda:
	$(TOOLKIT_FREE) go vet -tags cuda ./kernels/cuda/... ./kernels/gpu/... ./cmd/tilewright
	TOOLKIT=11040 $(TOOLKIT_FREE) go vet -tags cuda ./kernels/cuda
	$(TOOLKIT_FREE) go build -tags cuda -o out/tilewright-cuda ./cmd/tilewright
	kernels/cuda/needs-libc-only out/tilewright-cuda
	kernels/cuda/finds-drivers out/tilewright-cuda

# The same code, with gorgonia.org/cu, on a driver in Go that needs no GPU and
# can be told to fail.
cuda-sim:
	$(TOOLKIT_FREE) go vet -tags cuda,cudasim ./kernels/cuda/... ./kernels/gpu/... ./cmd/tilewright
	$(TOOLKIT_FREE) go test -race -short -tags cuda,cudasim ./kernels/cuda/...
	$(TOOLKIT_FREE) go test -tags cuda,cudasim -run Corpus ./kernels/cuda
	$(TOOLKIT_FREE) go build -tags cuda,cudasim -o out/tilewright-cudasim ./cmd/tilewright
	kernels/cuda/survives-faults out/tilewright-cudasim testdata/hlo/softmax.hlo
	kernels/cuda/reads-nvml out/tilewright-cudasim
	out/tilewright-cudasim doctor -device cuda:0 -only softmax -plans 0 -o out/doctor-cudasim

# The simplifier on WORKLOAD alone, and in the same rounds as isl and MLIR where
# their libraries are installed (Debian: libisl-dev; libmlir-19-dev clang-19).
bench-symbolic: ; @mkdir -p out && go run ./bench/symbolic -workload $(WORKLOAD) -rounds $(ROUNDS) -budget 30ms $(RIVALS) -answers out/symbolic.res.jsonl -times out/symbolic.tsv
bench-isl: out/isl
	@if test -x out/isl; then $(MAKE) --no-print-directory bench-symbolic RIVALS="-isl out/isl"; fi
bench-mlir: out/mlir
	@if test -x out/mlir; then $(MAKE) --no-print-directory bench-symbolic RIVALS="-mlir out/mlir"; fi
bench-rivals: out/isl out/mlir
	@$(MAKE) --no-print-directory bench-symbolic RIVALS="$(if $(wildcard out/isl),-isl out/isl) $(if $(wildcard out/mlir),-mlir out/mlir)"

# The simplifier, isl and MLIR on CHAINS chains that nobody has seen, made from SEED
# (another one every time unless given): shares of chains at the best form of all,
# wrong answers by evaluation at all points, times. JUDGE has more of its flags.
# check-symbolic evaluates our answers alone, to any number of chains.
CHAINS ?= 2000
SEED   ?= $(shell date +%s)
judge-symbolic: out/isl out/mlir
	@test -x out/isl && test -x out/mlir && go build -o out/judge-symbolic ./bench/symbolic && \
	out/judge-symbolic -chains $(CHAINS) -seed $(SEED) -isl out/isl -mlir out/mlir $(JUDGE)

check-symbolic: ; go run ./bench/symbolic -check -chains $(CHAINS) -seed $(SEED)

out/isl: bench/isl.c
	@mkdir -p out; if echo '#include <isl/aff.h>' | $(CC) -E - >/dev/null 2>&1; \
	then $(CC) -O2 -march=native -Wall -o $@ $< -lisl; \
	else echo "isl is not installed (Debian: apt-get install libisl-dev): nothing is measured"; fi
out/mlir: bench/mlir.cpp
	@mkdir -p out; if test -n "$(LLVM)"; \
	then $(LLVM_ROOT)/bin/clang++ -std=c++17 -O2 -march=native -fno-rtti -I$(LLVM_ROOT)/include -o $@ $< \
	  -L$(LLVM_ROOT)/lib -lMLIR -lLLVM -Wl,-rpath,$(LLVM_ROOT)/lib; \
	else echo "MLIR is not installed (Debian: apt-get install libmlir-19-dev llvm-19-dev clang-19): nothing is measured"; fi

# Tuned plans against OpenBLAS, MKL, oneDNN, XLA:CPU, PyTorch and the memory's rate,
# in turns, which a script installs from PyPI; QUICK=1 for a look at small shapes,
# PEERS='-essential -for 25m' for the most telling cases, PEERS_WITHOUT="torch jax" for
# fewer peers. What is measured already is left out, so that a run goes on where the last
# one stopped. What cannot be installed is named and left out.
PEERS ?=
QUICK ?=
bench-peers:
	bench/peers/install out/peers
	go run ./bench/peers $(if $(QUICK),-quick) $(PEERS)

# Lookups in snapshots of 10³, 10⁵ and 10⁶ records from Go, C and Python beside their
# goals; RECORDS=1000,100000 for a part of it.
RECORDS ?= 1000,100000,1000000
bench-lookup: lib
	@go build -o out/lookup ./bench/lookup && out/lookup -records $(RECORDS) -library out/lib

# The table of whole models (bench/models): MODELS="-run-budget 10m -only llama3"
# and the like for a part of it. XLA is the rival where models-corpus installed it.
MODELS ?=
models:
	go build -o out/tilewright ./cmd/tilewright && go run ./bench/models $(MODELS)

# Single operations by their default plans beside XLA:CPU: OPERATIONS="-check" to
# compare what they compute, or a kind or pattern of names for some of them.
operations: out/venv-models/installed
	go build -o out/tilewright ./cmd/tilewright
	out/venv-models/bin/python bench/models/operations.py $(OPERATIONS)

# The texts of whole models in bench/models, from JAX, and what it computes of them.
models-corpus: out/venv-models/installed
	out/venv-models/bin/python bench/models/make.py bench/models/corpus
	out/venv-models/bin/python bench/models/make.py -small bench/models/small
	out/venv-models/bin/python bench/models/oracle.py -record bench/models/small/expected.json.gz
out/venv-models/installed: bench/models/requirements.txt
	python3 -m venv out/venv-models && out/venv-models/bin/pip install -q -r $< && touch $@

# Those that come from PyTorch, and what it computes of them.
models-torch: out/venv-torch/installed
	go build -o out/tilewright ./cmd/tilewright
	out/venv-torch/bin/python bench/models/torch_models.py bench/models/corpus
	out/venv-torch/bin/python bench/models/torch_models.py -small -tilewright out/tilewright -record bench/models/small/expected.json.gz bench/models/small
# tilewright.torch with the real PyTorch, in the same virtual environment.
python-torch: out/venv-torch/installed lib
	out/venv-torch/bin/pip install -q pytest
	go build -o out/tilewright ./cmd/tilewright
	PATH="$$PWD/out:$$PATH" TILEWRIGHT_REAL_TORCH=1 TILEWRIGHT_LIBRARY=$$PWD/out/lib/libtilewright.so PYTHONPATH=cmd/libtilewright/python \
		out/venv-torch/bin/python -m pytest -q -p no:cacheprovider -k torch cmd/libtilewright/python/tests
out/venv-torch/installed: bench/models/requirements-torch.txt
	python3 -m venv out/venv-torch && out/venv-torch/bin/pip install -q -r $< && touch $@

# The prices of GPU plans on timings that others have measured (bench/judge), where
# JUDGE_DATA has them.
JUDGE_DATA ?= ../shared/data
judge: ; go run ./bench/judge -data $(JUDGE_DATA) $(JUDGE)

# The CPU's plans beside the best of at least 150 of each of 30 fusions; it wants a
# quiet machine. Samples are kept in out/oracle.jsonl: the same command goes on where
# it ended. ORACLE="-for 5m", "-only softmax" and the like for a part of it; with
# ORACLE="-processor -tune 0" one lane, by processor time, on a machine that others use.
ORACLE ?=
oracle:
	@mkdir -p out && go build -o out/oracle ./bench/oracle
	out/oracle -calibrate 12s -tune 10s -o out/oracle.jsonl $(ORACLE)

# The corpus tuned twice: winners that differ outside of declared ties, and winners
# that are slower than the default. Databases are kept, and gone on with, in out/twice.
FLIPS ?=
flips:
	@mkdir -p out && go build -o out/oracle ./bench/oracle
	out/oracle -twice out/twice -tune 10s $(FLIPS)

# The GPU backend's code by NVIDIA's assemblers and disassembler (bench/gpu), which
# pip installs; no GPU. SAMPLE is the share of the kernels, another one for each SEED,
# and JUDGE_GPU has more flags.
SAMPLE ?= 100%
NVIDIA  = $(CURDIR)/out/venv-gpu/lib/python3*/site-packages/nvidia/*/bin
judge-gpu: out/venv-gpu/installed
	go test ./kernels/ptx -run AssemblersAccept -seed $(SEED) -ptxas "$$(ls $(NVIDIA)/ptxas | paste -sd,)"
	go run ./bench/gpu -sample $(SAMPLE) -seed $(SEED) $(JUDGE_GPU)
out/venv-gpu/installed: bench/gpu/requirements.txt
	@python3 -m venv out/venv-gpu && out/venv-gpu/bin/pip install -q -r $< && touch $@ || \
	{ echo "judge-gpu: NVIDIA's assemblers are not installed: it needs python3 with venv, and pip its packages"; exit 1; }

# The CPU backend's machine code on Intel processors that Bochs emulates (bench/intel), AMX
# and AVX-VNNI included; the script gets Bochs's source by apt and compiles it. SAMPLE=1 for
# the instructions that few processors have alone, another SEED for other operands of these.
judge-intel: ; bench/intel/judge out/intel $(SEED) $(if $(filter-out 100%,$(SAMPLE)),sample)

# Our loops beside those of Triton's kernels (bench/gpu/beside.json).
judge-triton: out/venv-gpu/installed out/venv-foreign/installed
	out/venv-foreign/bin/python bench/gpu/beside.py bench/gpu/beside.json out/beside
	go run ./bench/gpu -beside out/beside > out/beside.txt && cp out/beside.txt bench/gpu/beside.txt

# Kernels of Triton, CUTLASS's DSL, nvcc and clang in the simulator, beside NumPy's results
# (bench/foreign); no GPU. JUDGE_FOREIGN has more flags.
FOREIGN = out/foreign/cases
judge-foreign: out/venv-foreign/installed
	out/venv-foreign/bin/python bench/foreign/triton_make.py $(FOREIGN)
	out/venv-foreign/bin/python bench/foreign/cuda_make.py $(FOREIGN)
	out/venv-foreign/bin/python bench/foreign/cutlass_make.py $(FOREIGN)
	go run ./bench/foreign -cases $(FOREIGN) -modules $(FOREIGN)/modules -mutants 300 -seed $(SEED) $(JUDGE_FOREIGN)
	go test ./kernels/gpu -count 1 -v -run LineMutants -line-mutants 300 -line-seed $(SEED)
out/venv-foreign/installed: bench/foreign/requirements.txt
	@python3 -m venv out/venv-foreign && out/venv-foreign/bin/pip install -q -r $< && touch $@ || \
	{ echo "judge-foreign: the compilers are not installed: it needs python3 with venv, and pip its packages"; exit 1; }

# Benchmarks of this tree against revision BASE, compared by benchstat; raw
# output stays in out/.
bench-compare:
	@mkdir -p out && old=$$(mktemp -d) && git worktree add -q --detach "$$old" $(BASE) && \
	(cd "$$old" && go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES)) > out/bench-base.txt; \
	git worktree remove --force "$$old"; \
	go test -run '^$$' -bench '$(BENCH)' -benchmem -count $(COUNT) $(PACKAGES) > out/bench-this.txt; \
	go run $(BENCHSTAT) base=out/bench-base.txt this=out/bench-this.txt

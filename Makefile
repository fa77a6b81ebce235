# titin. `make help` lists what can be made.
#
# CC=gcc|clang  REAL=f32|f64  ARCH=native|x86-64-v3|…  CUDA=1  SAN=1  WERROR=1: every combination but the last has a
# folder of its own under build/, so they never mix; the default one (gcc, f32, native) is build/ itself.

# ---- what is built, and where ----

ifeq ($(origin CC),default)
CC := gcc
endif
REAL  := f32
JOBS  := $(shell nproc)

# A build from source is for this machine; what is installed or packaged is for any of the last ten years.
PORTABLE_ARCH := $(if $(filter x86_64,$(shell uname -m)),x86-64-v3,armv8-a)
ARCH          := $(if $(filter install,$(MAKECMDGOALS)),$(PORTABLE_ARCH),native)

space   := $(subst ,, )
comma   := ,
build_of = build$(addprefix /,$(subst $(space),-,$(strip $(filter-out gcc,$(notdir $(CC))) $(filter-out f32,$(1)) \
             $(filter-out native,$(ARCH)) $(if $(CUDA),cuda) $(if $(SAN),san) $(if $(FUZZING),fuzz))))
BUILD   := $(call build_of,$(REAL))

VERSION := $(shell sed -n 's/^\#define TTN_VERSION "\(.*\)"/\1/p' core/titin.h)
SOVERSION := $(firstword $(subst ., ,$(VERSION)))

ifeq ($(filter f32 f64,$(REAL)),)
$(error REAL is f32 or f64, not '$(REAL)')
endif

# ---- flags ----

# The three -f… change no result that a formula asks for: without the second gcc leaves every loop over exp scalar
# (8 to 10 times slower); the third forbids fusing a*b+c behind our back (core/real.h). Never -ffast-math.
FLOAT    := -fno-math-errno -fno-trapping-math -ffp-contract=off
WARN     := -Wall -Wextra -Wshadow -Wconversion -Wno-sign-conversion -Wstrict-prototypes -Wmissing-prototypes \
            -Wpointer-arith -Wvla -Wno-unknown-pragmas $(if $(SAN),-Wno-pass-failed) $(if $(WERROR),-Werror)
OPTIMISE := $(if $(SAN),-O1,-O3) -g
SANITIZE := $(if $(SAN),-fsanitize=address$(comma)undefined -fno-sanitize-recover=all -fno-omit-frame-pointer) \
            $(if $(FUZZING),-fsanitize=fuzzer-no-link)
ARCH_FLAG := -march=$(ARCH)
# What must run before the processor has been checked is compiled for any of its family.
BASE_ARCH_FLAG := $(if $(filter x86_64,$(shell uname -m)),-march=x86-64,-march=armv8-a)

# HDF5 lies in a folder of its own, since a machine may have serial and parallel ones: Debian's serial one, whose libraries
# lie where the linker looks (so that titin.pc needs no -L of another package), else what pkg-config says. -isystem: its
# headers are not ours to warn about.
HDF5_DEBIAN := $(patsubst %/hdf5.h,%,$(wildcard /usr/include/hdf5/serial/hdf5.h))
HDF5_CFLAGS := $(if $(HDF5_DEBIAN),-isystem $(HDF5_DEBIAN),$(patsubst -I%,-isystem %,$(shell pkg-config --cflags hdf5 2>/dev/null)))
HDF5_LIBS   := $(if $(HDF5_DEBIAN),-lhdf5_serial_hl -lhdf5_serial,$(patsubst -lhdf5,-lhdf5_hl -lhdf5,$(or $(shell pkg-config --libs hdf5 2>/dev/null),-lhdf5)))
INCLUDES    := -I. $(HDF5_CFLAGS)

TTN_CFLAGS := -std=c11 -D_GNU_SOURCE $(INCLUDES) -fopenmp -fPIC -fvisibility=hidden $(OPTIMISE) $(FLOAT) $(WARN) $(SANITIZE) \
              $(if $(filter f64,$(REAL)),-DTTN_REAL64)
LIBS        = -lopenblas -lyaml -ljansson $(HDF5_LIBS) -lcairo -lz -lm $(if $(CUDA),$(CUDA_LIBS))
LDFLAGS_ALL = -fopenmp $(SANITIZE) $(LDFLAGS)

# ---- C++: kernels and the emulation of a GPU, in tests only ----

CXX := $(patsubst %gcc,%g++,$(patsubst %clang,%clang++,$(CC)))
CXX_WARN := -Wall -Wextra -Wshadow -Wno-unknown-pragmas -Wno-unused-function $(if $(WERROR),-Werror)
CXX_FLAGS = -std=gnu++17 -I. -Itests/cuda -fPIC -O1 -g $(FLOAT) $(CXX_WARN) $(SANITIZE) $(if $(filter f64,$(REAL)),-DTTN_REAL64)
# Calls before every load and store of a kernel, and where an index or an alignment is wrong: tests/cuda/shadow.cpp answers
# them (the sanitizers' own libraries are not linked). A build under AddressSanitizer goes without.
LOOK := $(if $(SAN),,-fsanitize=thread -fsanitize=alignment$(comma)bounds $(if $(findstring clang,$(CC)),-mllvm -tsan-instrument-func-entry-exit=0, \
            --param tsan-instrument-func-entry-exit=0))
# Structures are copied by calls of these, which would not be seen: kernels call emulation_memcpy and so on.
RENAMED := $(if $(SAN),,memcpy memmove memset)

# ---- CUDA ----

# CUDA=1: kernels by nvcc, for compute capability 8.x and 9.x, and PTX for what is newer. -fmad=false is what
# -ffp-contract=off is above: a product and a sum are fused where ttn_fma says so, and the numbers are those that the tests see.
CUDA_HOME  := $(or $(patsubst %/bin/nvcc,%,$(shell command -v nvcc)),/usr/local/cuda)
NVCC       := $(CUDA_HOME)/bin/nvcc
CUDA_ARCHS := 80 90
CUDA_LIBS  := -L$(CUDA_HOME)/lib64 -Wl,-rpath,$(CUDA_HOME)/lib64 -lcublas -lcudart -lstdc++
NVCC_FLAGS := -std=c++17 -I. -O3 -fmad=false -lineinfo -ccbin $(CC) -Xcompiler -fPIC,-fvisibility=hidden,-Wall,-Wextra,-Wno-unknown-pragmas \
              $(foreach a,$(CUDA_ARCHS),-gencode arch=compute_$a,code=sm_$a) \
              -gencode arch=compute_$(lastword $(CUDA_ARCHS)),code=compute_$(lastword $(CUDA_ARCHS)) \
              $(if $(WERROR),-Werror all-warnings) $(if $(filter f64,$(REAL)),-DTTN_REAL64)

ifneq ($(CUDA),)
ifeq ($(filter print-%,$(MAKECMDGOALS))$(wildcard $(NVCC)),)
$(error CUDA=1 needs nvcc, and $(NVCC) is not there; CUDA_HOME=... names the toolkit's folder)
endif
endif

# ---- sources ----

# Without CUDA, core/device_nocuda.c and autograd/registry_nocuda.c supply the same symbols and say so.
ALL_SOURCES  := $(wildcard core/*.c autograd/*.c autograd/ops/*.c data/*.c train/*.c train/files/*.c train/look/*.c)
CUDA_SOURCES := core/device_cuda.c autograd/registry_cuda.c
KERNELS  := $(wildcard core/*.cu autograd/*.cu autograd/ops/*.cu)
SOURCES  := $(filter-out $(if $(CUDA),$(CUDA_SOURCES:cuda.c=nocuda.c),$(CUDA_SOURCES)),$(ALL_SOURCES)) $(if $(CUDA),$(KERNELS))
PROGRAM  := $(wildcard train/cli/*.c)
PRESETS  := $(wildcard configs/*.yaml)
# Run before, or to find out, what the processor can do.
BASELINE := core/cpu.c core/status.c core/text.c train/cli/main.c train/cli/program.c train/cli/terminal.c

HARNESS  := $(filter-out tests/harness/run.c,$(wildcard tests/harness/*.c))
# These do not depend on `real`: they are built and run once, with the f32 ones. (A name without a test is an error.)
ONCE     := autograd/test_length $(addprefix core/test_,builder hdf5 lock machine nearest number options path text values) \
            $(addprefix data/test_,alphabet batch_rules card fasta gzip loader mlm order pack sampler sequences source split store subset) \
            $(addprefix train/test_,checkpoint_faults checkpoint_info checkpoint_order commands config config_corpus convert \
                                    curve doctor event_file export facts json layout metrics metrics_log report run_folder safetensors schedule \
                                    screen_train stopped terminal training)
TESTS_ONCE := $(ONCE:%=tests/%.c)
TESTS    := $(filter-out $(TESTS_ONCE),$(wildcard tests/*/test_*.c))
EMULATED_TESTS := $(wildcard tests/cuda/test_*.c)
SCRIPTS  := $(wildcard tests/*/test_*.sh)
BENCHES  := $(wildcard tests/bench/bench_*.c)
FUZZERS  := $(wildcard tests/fuzz/fuzz_*.c)

OBJ            := $(BUILD)/obj
OBJECTS        := $(patsubst %.cu,$(OBJ)/%.cu.o,$(SOURCES:%.c=$(OBJ)/%.o))
PROGRAM_OBJECTS := $(PROGRAM:%.c=$(OBJ)/%.o)
HARNESS_OBJECTS := $(HARNESS:%.c=$(OBJ)/%.o)
TEST_PROGRAMS  := $(patsubst tests/%.c,$(BUILD)/tests/%,$(TESTS) $(if $(filter f32,$(REAL)),$(TESTS_ONCE)))
BENCH_PROGRAMS := $(BENCHES:tests/bench/bench_%.c=$(BUILD)/bench/%)
FUZZ_PROGRAMS  := $(FUZZERS:tests/fuzz/fuzz_%.c=$(BUILD)/fuzz/%)
RUN            := build/tests/run

# Every call of these from our objects goes through tests/harness/shim.c, which can make the Nth one fail.
SHIMMED := malloc calloc realloc aligned_alloc posix_memalign mmap mprotect write pwrite read pread fsync rename renameat2 close open \
           mkdir unlink rmdir symlink ftruncate posix_fallocate
WRAP    := $(SHIMMED:%=-Wl,--wrap=%)

# Commands are named, not shown; V=1 shows them.
say = $(if $(V),,@printf '  %-6s %s\n' $(1) $@; )

# ---- default: library and program ----

# Lists of sources and of presets, each written when it changes: what holds something that was removed is made anew.
SOURCE_LIST := $(BUILD)/sources
PRESET_LIST := $(BUILD)/presets

all: $(BUILD)/libtitin.a $(BUILD)/libtitin.so $(BUILD)/titin $(BUILD)/titin.h

$(BUILD)/libtitin.a: $(OBJECTS) $(SOURCE_LIST)
	@rm -f $@
	$(call say,AR)$(AR) qcs $@ $(OBJECTS)

SO := libtitin.so.$(VERSION)
$(BUILD)/$(SO): $(OBJECTS) $(SOURCE_LIST)
	$(call say,LINK)$(CC) -shared -Wl,-soname,libtitin.so.$(SOVERSION) $(if $(SAN),,-Wl,--no-undefined) $(LDFLAGS_ALL) -o $@ $(OBJECTS) $(LIBS)
$(BUILD)/libtitin.so.$(SOVERSION): $(BUILD)/$(SO)
	@ln -sf $(SO) $@
$(BUILD)/libtitin.so: $(BUILD)/libtitin.so.$(SOVERSION)
	@ln -sf libtitin.so.$(SOVERSION) $@

$(BUILD)/titin: $(PROGRAM_OBJECTS) $(OBJ)/build.o $(BUILD)/libtitin.a $(SOURCE_LIST)
	$(call say,LINK)$(CC) $(LDFLAGS_ALL) -o $@ $(filter-out $(SOURCE_LIST),$^) $(LIBS)

# The flags and the compiler are a prerequisite: another set of them, or a build folder carried to another
# processor, builds again; WERROR=1 alone does not. The last line stands for what ARCH=native means here.
STAMP := $(BUILD)/flags
FLAGS_NOW := $(shell $(CC) --version 2>/dev/null | head -n 1) $(if $(CUDA),$(NVCC) $(filter-out -Werror all-warnings,$(NVCC_FLAGS))) \
             $(filter-out -Werror,$(CXX_FLAGS) $(LOOK) $(RENAMED) $(TTN_CFLAGS) $(ARCH_FLAG) $(CFLAGS) $(LDFLAGS)) \
             $(shell $(CC) $(ARCH_FLAG) -E -dM -x c /dev/null 2>/dev/null | cksum)
ifneq ($(FLAGS_NOW),$(shell cat $(STAMP) 2>/dev/null))
$(STAMP): FORCE
	@mkdir -p $(@D)
	@echo '$(FLAGS_NOW)' > $@
endif

# $(call list,FILE,WORDS); the first word is the same, so that a list of none is not as good as no file.
define list
ifneq ($(strip list: $(2)),$$(strip $$(shell cat $(1) 2>/dev/null)))
$(1): FORCE
	@mkdir -p $$(@D)
	@echo '$(strip list: $(2))' > $$@
endif
endef
$(eval $(call list,$(SOURCE_LIST),$(SOURCES) $(PROGRAM)))
$(eval $(call list,$(PRESET_LIST),$(PRESETS)))

# Presets are part of the program, so that they are found from anywhere: each becomes a text in C.
$(BUILD)/presets.inc: $(PRESETS) $(PRESET_LIST) Makefile
	@mkdir -p $(@D)
	@for preset in $(PRESETS); do \
	     printf '{"%s", ""\n' "$$(basename "$$preset" .yaml)"; \
	     LC_ALL=C sed 's/[\\"?]/\\&/g; s/\t/\\t/g; s/\r/\\r/g; s/.*/"&\\n"/' "$$preset"; \
	     printf '},\n'; \
	 done > $@
$(OBJ)/train/config_presets.o: TTN_CFLAGS += -I$(BUILD)
$(OBJ)/train/config_presets.o: $(BUILD)/presets.inc

# How it was built, for `titin version`: as a source, which is made anew with the flags.
$(OBJ)/build.c: $(STAMP) Makefile
	@mkdir -p $(@D)
	@printf '#include "train/cli/build.h"\nconst char ttn_build_flags[] = "%s";\nconst int ttn_build_has_cuda = %d;\n' \
	    '$(subst ",\",$(subst \,\\,$(strip $(OPTIMISE) $(FLOAT) $(SANITIZE) $(ARCH_FLAG) $(CFLAGS))))' $(if $(CUDA),1,0) > $@
$(OBJ)/build.o: $(OBJ)/build.c
	$(call say,CC)$(CC) $(TTN_CFLAGS) $(CFLAGS) -c -o $@ $<

$(BASELINE:%.c=$(OBJ)/%.o): ARCH_FLAG := $(BASE_ARCH_FLAG)
$(OBJ)/%.o: %.c $(STAMP)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(TTN_CFLAGS) $(CUDA_INCLUDE) $(ARCH_FLAG) $(CFLAGS) -MMD -MP -c -o $@ $<

# Registers, shared memory and spills of each kernel go to NAME.cu.txt: .ci/nvcc reads them.
$(OBJ)/%.cu.o: %.cu $(STAMP)
	@mkdir -p $(@D)
	$(call say,NVCC)$(NVCC) $(NVCC_FLAGS) $(NVCCFLAGS) -Xptxas -v -MMD -MP -c -o $@ $< 2> $(@:.o=.txt) || { cat $(@:.o=.txt) >&2; exit 1; }

# The toolkit's headers, for the two sources in C that speak to it.
$(CUDA_SOURCES:%.c=$(OBJ)/%.o): CUDA_INCLUDE := -isystem $(CUDA_HOME)/include

# ---- set-up ----

# SETUP="build test check" is what CI needs; SETUP=none: the libraries are there in another way than as Debian's packages.
SETUP := build test
setup:
	@.ci/setup $(SETUP)

# ---- tests ----

# `make test T=core/rng` runs what matches; TTN_SCALE=0.1 cuts loops and sizes; SAN=1 runs f32 only.
T :=
TEST_REALS := $(if $(SAN),f32,f32 f64)

test: setup
	@$(foreach real,$(TEST_REALS),$(MAKE) --no-print-directory -j$(JOBS) REAL=$(real) test-programs &&) true
	@$(MAKE) -s --no-print-directory $(RUN)
	@BUILD=$(BUILD) CC=$(CC) SAN=$(SAN) $(RUN) --jobs $(JOBS) --filter '$(T)' \
	    $(foreach real,$(TEST_REALS),--label $(real) $(TESTS:tests/%.c=$(call build_of,$(real))/tests/%)) \
	    --label once $(TESTS_ONCE:tests/%.c=$(call build_of,f32)/tests/%) \
	    $(if $(SAN),,--label house $(SCRIPTS))

test-long:
	@TTN_LONG=1 TTN_LIMIT=1800 $(MAKE) --no-print-directory test
	@TTN_LIMIT=1800 $(MAKE) --no-print-directory test-kernels
	@$(MAKE) --no-print-directory faults

# What multiplies, again under every kernel of OpenBLAS that the processor has and with other numbers of threads.
MULTIPLYING := $(filter-out $(TESTS_ONCE),$(wildcard tests/core/test_blas*.c tests/core/test_gemm*.c tests/autograd/test_*.c)) \
               $(addprefix tests/train/test_,evaluate.c fill.c model.c optim.c trainer.c trajectory.c validation.c)
test-kernels: setup
	@$(foreach real,f32 f64,$(MAKE) --no-print-directory -j$(JOBS) REAL=$(real) test-programs &&) true
	@$(MAKE) -s --no-print-directory $(RUN)
	@tests/kernels/run $(RUN) --jobs $(JOBS) --filter '$(T)' \
	    $(foreach real,f32 f64,--label $(real) $(MULTIPLYING:tests/%.c=$(call build_of,$(real))/tests/%)) \
	    --label f32 $(call build_of,f32)/tests/train/test_training

test-programs: all $(TEST_PROGRAMS)

$(BUILD)/tests/%: $(OBJ)/tests/%.o $(HARNESS_OBJECTS) $(BUILD)/libtitin.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS_ALL) $(WRAP) -o $@ $(filter %.o,$^) $(filter %.a,$^) $(LIBS) -lcmocka

# Tests of the program look at its parts, too.
$(filter $(BUILD)/tests/train/%,$(TEST_PROGRAMS)): $(filter-out %/main.o,$(PROGRAM_OBJECTS)) $(OBJ)/build.o

# Calls between our own sources at which this test stops a run.
STOPPED_AT := ttn_store_add ttn_plan_create ttn_gemm_rows ttn_gemm_wgrad ttn_shards_add ttn_optim_step ttn_validation_add \
              ttn_metrics_log_add ttn_report_save
$(BUILD)/tests/train/test_stopped: WRAP += $(STOPPED_AT:%=-Wl,--wrap=%)

# Here the archives of these libraries are linked, so that their requests for memory go through the shim as well.
$(BUILD)/tests/train/test_config: LIBS := -l:libyaml.a -l:libjansson.a $(LIBS)

# ---- tests of what runs on a GPU, without one ----

# tests/cuda/test_*.c run every kernel on an emulation of CUDA in plain C++ (tests/cuda/*.cpp). They are linked with the
# sources of a CUDA build in front of the library, whose device_nocuda.o and registry_nocuda.o nobody then asks for.
EMULATED       := $(BUILD)/emulated
EMULATION      := $(filter-out $(if $(SAN),tests/cuda/callbacks.cpp),$(wildcard tests/cuda/*.cpp))
EMULATED_OBJECTS := $(CUDA_SOURCES:%.c=$(EMULATED)/%.o) $(KERNELS:%.cu=$(EMULATED)/%.cu.o) $(EMULATION:%.cpp=$(EMULATED)/%.o) \
                    $(patsubst %.cu,$(EMULATED)/%.cu.o,$(wildcard tests/cuda/*.cu))

$(EMULATED)/%.cu.o: %.cu $(STAMP)
	@mkdir -p $(@D)
	$(call say,EMUL)$(CXX) -x c++ $(CXX_FLAGS) $(LOOK) $(CXXFLAGS) -MMD -MP -c -o $@ $<
	$(if $(RENAMED),@objcopy $(foreach f,$(RENAMED),--redefine-sym $f=emulation_$f) $@)
$(EMULATED)/%.o: %.cpp $(STAMP)
	@mkdir -p $(@D)
	$(call say,CXX)$(CXX) $(CXX_FLAGS) $(CXXFLAGS) -MMD -MP -c -o $@ $<
$(EMULATED)/%.o: %.c $(STAMP)
	@mkdir -p $(@D)
	$(call say,CC)$(CC) $(TTN_CFLAGS) -Itests/cuda $(ARCH_FLAG) $(CFLAGS) -MMD -MP -c -o $@ $<

$(EMULATED_TESTS:tests/%.c=$(BUILD)/tests/%): $(BUILD)/tests/%: $(EMULATED)/tests/%.o $(EMULATED_OBJECTS) $(HARNESS_OBJECTS) $(BUILD)/libtitin.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS_ALL) $(WRAP) -o $@ $^ $(LIBS) -lcmocka -lstdc++

# On a machine with a GPU (tests/gpu/run): the ops beside the CPU, without the emulation, and what is measured there.
gpu-programs: $(BUILD)/gpu/test_ops_cuda $(BUILD)/gpu/measure
$(BUILD)/gpu/test_ops_cuda: $(OBJ)/tests/cuda/test_ops_cuda.o $(OBJ)/tests/gpu/real.o
$(BUILD)/gpu/measure: $(OBJ)/tests/gpu/measure.o
$(BUILD)/gpu/%: $(HARNESS_OBJECTS) $(BUILD)/libtitin.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS_ALL) $(WRAP) -o $@ $(filter %.o,$^) $(BUILD)/libtitin.a $(LIBS) -lcmocka

# In f32 the test of the ops also computes in double: the f64 library with its symbols renamed is linked into it.
ifeq ($(REAL),f32)
DOUBLE_LIB := $(call build_of,f64)/libtitin.a
$(DOUBLE_LIB): FORCE
	@$(MAKE) -q REAL=f64 $@ || $(MAKE) --no-print-directory REAL=f64 $@
$(BUILD)/tests/double.o: $(DOUBLE_LIB)
	@mkdir -p $(@D)
	$(LD) -r --whole-archive -o $@.all $<
	@nm --defined-only -g $@.all | awk '$$3 ~ /^(__odr_asan\.)?ttn_/ {print $$3, "f64_" $$3}' > $@.names
	objcopy --redefine-syms=$@.names $@.all $@
$(BUILD)/tests/autograd/test_ops $(BUILD)/tests/autograd/test_length: $(BUILD)/tests/double.o
endif

# The runner has no variant: it only starts programs and counts.
$(RUN): tests/harness/run.c
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) -std=c11 -D_GNU_SOURCE -O1 -g $(WARN) -o $@ $<

# One thing broken on purpose at a time; a test must notice. F=NAME: only that one.
F :=
faults: setup
	@tests/faults/run $(F)

# ---- the first model ----

quickstart: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@BUILD=$(BUILD) configs/quickstart.sh

# ---- kinds of attention beside each other ----

compare: setup
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@BUILD=$(BUILD) configs/compare.sh

# ---- data ----

data:
	@data/download

# ---- benchmarks ----

B :=
bench: setup
	@$(MAKE) --no-print-directory -j$(JOBS) bench-programs
	@tests/bench/run $(BUILD) $(B)

bench-programs: all $(BENCH_PROGRAMS)

$(BUILD)/bench/%: $(OBJ)/tests/bench/bench_%.o $(OBJ)/tests/bench/bench.o $(OBJ)/tests/harness/model.o $(BUILD)/libtitin.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS_ALL) -o $@ $^ $(LIBS) -lxxhash

# ---- fuzzing: clang's libFuzzer with both sanitizers ----

FUZZ_S := 60
fuzz:
	@.ci/setup $(if $(filter none,$(SETUP)),none,build check)
	@$(MAKE) --no-print-directory -j$(JOBS) all
	@$(MAKE) --no-print-directory -j$(JOBS) CC=clang SAN=1 FUZZING=1 fuzz-programs
	@tests/fuzz/run $(FUZZ_S) build/clang-san-fuzz/fuzz $(BUILD)/titin

fuzz-programs: $(FUZZ_PROGRAMS)

$(BUILD)/fuzz/%: $(OBJ)/tests/fuzz/fuzz_%.o $(OBJ)/tests/fuzz/fuzz.o $(BUILD)/libtitin.a
	@mkdir -p $(@D)
	$(call say,LINK)$(CC) $(LDFLAGS_ALL) -fsanitize=fuzzer -o $@ $^ $(LIBS)

# ---- format, lint ----

C_FILES = $(wildcard core/*.[ch] autograd/*.[ch] autograd/ops/*.[ch] data/*.[ch] train/*.[ch] train/*/*.[ch] tests/*/*.[ch])
CXX_FILES = $(KERNELS) $(wildcard tests/cuda/*.cpp tests/cuda/*.cu)
format:
	clang-format -i $(C_FILES) $(CXX_FILES)

lint: $(BUILD)/titin.h $(BUILD)/presets.inc
	@.ci/lint $(C_FILES) $(CXX_FILES)

# ---- install ----

PREFIX  := /usr/local
DESTDIR :=
prefix  = $(DESTDIR)$(PREFIX)
INSTALLED = bin/titin share/man/man1/titin.1 share/bash-completion/completions/titin lib/libtitin.a lib/$(SO) lib/libtitin.so.$(SOVERSION) lib/libtitin.so lib/pkgconfig/titin.pc include/titin.h

install: all $(BUILD)/titin.pc
	install -d "$(prefix)/bin" "$(prefix)/lib/pkgconfig" "$(prefix)/include" "$(prefix)/share/man/man1" \
	    "$(prefix)/share/bash-completion/completions"
	install -m 755 $(BUILD)/titin "$(prefix)/bin/titin"
	install -m 644 $(BUILD)/libtitin.a $(BUILD)/$(SO) "$(prefix)/lib"
	ln -sf $(SO) "$(prefix)/lib/libtitin.so.$(SOVERSION)"
	ln -sf libtitin.so.$(SOVERSION) "$(prefix)/lib/libtitin.so"
	install -m 644 $(BUILD)/titin.h "$(prefix)/include/titin.h"
	install -m 644 $(BUILD)/titin.pc "$(prefix)/lib/pkgconfig/titin.pc"
	@if $(BUILD)/titin --help > /dev/null; then \
	    $(BUILD)/titin help --man > "$(prefix)/share/man/man1/titin.1" && \
	    $(BUILD)/titin help --bash > "$(prefix)/share/bash-completion/completions/titin"; \
	else echo 'install: no man page and no completion of bash: titin makes them, and does not run on this machine'; fi

uninstall:
	rm -f $(INSTALLED:%="$(prefix)/%")

# One installed header: core/titin.h with the public headers it names put in their places.
PUBLIC_HEADERS := $(shell sed -n 's/^\#include "\(.*\)"/\1/p' core/titin.h)
$(BUILD)/titin.h: core/titin.h core/api.h $(PUBLIC_HEADERS) Makefile
	@mkdir -p $(@D)
	@awk 'function put(file,   line) { \
	          if (file in done) return; \
	          done[file] = 1; \
	          while ((getline line < file) > 0) \
	              if (line ~ /^#include "/) { split(line, part, "\""); put(part[2]) } else print line \
	      } BEGIN { put("core/titin.h") }' > $@

# The prefix may change from one call to the next: always written.
$(BUILD)/titin.pc: FORCE
	@printf '%s\n' 'prefix=$(PREFIX)' 'libdir=$${prefix}/lib' 'includedir=$${prefix}/include' '' \
	    'Name: titin' 'Description: protein language models with attention of linear cost' 'Version: $(VERSION)' \
	    'Cflags: -I$${includedir}' 'Libs: -L$${libdir} -ltitin' 'Libs.private: $(LIBS) -fopenmp' > $@

# ---- the rest ----

clean:
	rm -rf build

print-%:
	@echo '$($*)'

help:
	@sed -n 's/^#: //p' Makefile
#: make                         build/libtitin.a, build/libtitin.so and the program build/titin
#: make quickstart              set-up, build, and a first model of the sample of proteins: some minutes
#: make test [T=core/rng]       all set-up, both precisions, all tests or those whose name matches
#: make SAN=1 test              the same under AddressSanitizer and UndefinedBehaviorSanitizer (f32)
#: make test-kernels [T=nn]     what multiplies, under every kernel of OpenBLAS and other numbers of threads
#: make test-long               full sweeps, every kernel, and every planted fault
#: make faults [F=NAME]         break one thing at a time; a test must notice
#: make data                    20,000 proteins for experiments, to data/downloaded (Debian, nothing is installed)
#: make compare [KINDS='exact none' SEEDS=3]  kinds of attention beside each other on these; some minutes a run
#: make bench [B=NAME]          performance, as ratios to something measured in the same run
#: make fuzz [FUZZ_S=60]        each fuzz target for that many seconds (clang)
#: make setup                   install the Debian packages that are missing (as root, or by sudo); SETUP=none: none
#: make format, make lint       clang-format; clang-format, clang-tidy, cppcheck as checks
#: make install [PREFIX= DESTDIR=], make uninstall
#: make clean, make help
#:
#: variables: CC=gcc|clang  REAL=f32|f64  ARCH=native|x86-64-v3|...  SAN=1  WERROR=1  V=1 (show commands)  CFLAGS=  LDFLAGS=
#:            CUDA=1 with kernels for GPUs  CUDA_HOME=/usr/local/cuda

FORCE:
PHONY := all quickstart compare data setup test test-kernels test-long test-programs faults bench bench-programs gpu-programs fuzz fuzz-programs format lint install \
         uninstall clean help FORCE
.PHONY: $(PHONY)
.SECONDARY:
.DELETE_ON_ERROR:

-include $(shell find $(OBJ) $(EMULATED) -name '*.d' 2>/dev/null)

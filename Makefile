# SPDX-License-Identifier: BSD-2-Clause
# Everything is built below build/ (build/san with SAN=1). V=1 shows the commands.

VERSION := 0.1.0
ARCH := x86
OUT := build$(if $(SAN),/san)
# what sanitizers do not change is made once
BASE := $(patsubst %/san,%,$(OUT))
PREFIX ?= /usr/local
SYSCONFDIR ?= /etc
DESTDIR ?=

CC ?= gcc
CLANG ?= clang
# looked for once, and only where something is made with it
BPFTOOL ?= $(eval BPFTOOL := $(shell scripts/find-bpftool))$(BPFTOOL)
# empty for what is installed or packaged: another compiler warns of more
WERROR ?= -Werror
WARN = -Wall -Wextra -Wformat=2 -Wshadow -Wstrict-prototypes -Wmissing-prototypes $(WERROR)
# what sanitizers find takes lines, no more; -O1 takes half as long again to compile, and the tests run no faster
CFLAGS ?= $(if $(SAN),-Og -g1,-O2 -g)
# a warning that only -O2 has few enough of
SANITIZE := -fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -Wno-format-truncation
override CFLAGS += -std=gnu11 $(WARN) $(if $(SAN),$(SANITIZE))
ifneq ($(SAN),)
# a hundred tests are linked, which takes it half as long
override LDFLAGS += $(shell echo 'int main(void) { return 0; }' | $(CC) -fuse-ld=gold -x c -o /dev/null - 2>/dev/null && echo -fuse-ld=gold)
endif
CPPFLAGS += -D_GNU_SOURCE -DBPFPROF_VERSION='"$(VERSION)"' -I. -Iuser -Ibpf -Iinclude -I$(BASE)/gen -MMD -MP
LDLIBS := -linih -ljansson -lbpf -ldw -lelf -lz -ldeflate -llzma -lzstd -lprotobuf-c -liberty -ldl -lm -pthread
BPF_CFLAGS = -O2 -g -target bpf -D__TARGET_ARCH_$(ARCH) -Ibpf -Ivmlinux/$(ARCH) -Wall -Wextra $(WERROR) -Wno-unused-parameter -MMD -MP

Q := $(if $(V),,@)
say = $(if $(V),,@printf '  %-7s %s\n' $(1) $(2))

# the definitions first: bpftool's linker (7.1) misplaces what it meets as extern before; then what takes longest to verify, since
# programs are loaded at the same time, in this order
BPF_FIRST := $(addprefix bpf/,maps.bpf.c waits.bpf.c heap.bpf.c)
BPF_SRC := $(BPF_FIRST) $(filter-out $(BPF_FIRST),$(wildcard bpf/*.bpf.c))
BPF_OBJ := $(BPF_SRC:%.c=$(BASE)/%.o)
# the same for kernels without bpf_loop
BPF_OBJ_NOLOOP := $(BPF_OBJ:%/stack.bpf.o=%/stack_noloop.bpf.o)
SKEL := $(BASE)/gen/bpfprof.skel.h
SKEL_NOLOOP := $(BASE)/gen/noloop.skel.h
PROTO := user/profile/profile.proto $(wildcard user/courier/*.proto user/target/*.proto)
PROTO_C := $(patsubst %.proto,$(BASE)/gen/%.pb-c.c,$(notdir $(PROTO)))
PROTO_H := $(PROTO_C:.c=.h)
PROTO_O := $(PROTO_C:.c=.o)
SYSCALLS_H := $(BASE)/gen/syscalls.h
PAGE_H := $(BASE)/gen/page_parts.h
LIB_SRC := $(filter-out user/main.c user/courier/main.c user/preload/%,$(wildcard user/*.c user/*/*.c))
LIB_OBJ := $(LIB_SRC:%.c=$(OUT)/%.o) $(PROTO_O)
LIB := $(OUT)/libbpfprof.a
PRELOAD := $(OUT)/libbpfprof-heap.so
COURIER := $(OUT)/bpfprof-courier
UNIT := $(patsubst tests/unit/%.c,$(OUT)/tests/unit/%,$(wildcard tests/unit/test_*.c))
HOST_BPF := $(patsubst tests/bpf/%.c,$(OUT)/tests/bpf/%,$(wildcard tests/bpf/test_*.c))

.DELETE_ON_ERROR:
.SECONDARY:
.SUFFIXES:
.PHONY: all bpfprof progs unit check check-root check-kernels check-page bench soak figures callcheck install uninstall deb rpm dist format clean

all: bpfprof $(COURIER) $(PRELOAD)

bpfprof: $(OUT)/bpfprof
	$(Q)ln -sf $< $@

$(OUT)/bpfprof: $(OUT)/user/main.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS)

# libcurl brings a dozen libraries more: only who speaks to the network has them
$(COURIER): $(OUT)/user/courier/main.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ -lcurl -lmicrohttpd -lprotobuf-c -lz -ldeflate -lm -pthread

$(LIB): $(LIB_OBJ)
	$(call say,AR,$@)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(BASE)/%.bpf.o: %.bpf.c
	$(call say,BPF,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -c -o $@ $<

$(BASE)/bpf/stack_noloop.bpf.o: bpf/stack.bpf.c
	$(call say,BPF,'$< without bpf_loop')
	$(Q)mkdir -p $(@D) && $(CLANG) $(BPF_CFLAGS) -DWITHOUT_LOOP -c -o $@ $<

$(BASE)/gen/bpfprof.o: $(BPF_OBJ)
$(BASE)/gen/noloop.o: $(BPF_OBJ_NOLOOP)
$(BASE)/gen/bpfprof.o $(BASE)/gen/noloop.o:
	$(call say,BPFLINK,$@)
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen object $@ $^

$(SKEL): $(BASE)/gen/bpfprof.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name bpfprof_bpf > $@

$(SKEL_NOLOOP): $(BASE)/gen/noloop.o
	$(call say,SKEL,$@)
	$(Q)$(BPFTOOL) gen skeleton $< name noloop_bpf > $@

vpath %.proto $(sort $(dir $(PROTO)))
$(BASE)/gen/%.pb-c.c $(BASE)/gen/%.pb-c.h: %.proto
	$(call say,PROTO,$<)
	$(Q)mkdir -p $(BASE)/gen && protoc-c --proto_path=$(<D) --c_out=$(BASE)/gen $<

$(PROTO_O): %.o: %.c
	$(Q)$(CC) $(CPPFLAGS) -O2 -g -c -o $@ $<

$(SYSCALLS_H): scripts/gen-syscalls
	$(call say,SYSCALL,$@)
	$(Q)mkdir -p $(@D) && CC='$(CC)' scripts/gen-syscalls > $@

$(PAGE_H): scripts/gen-page $(addprefix user/view/,page.html page.css model.js sides.js page.js)
	$(call say,PAGE,$@)
	$(Q)mkdir -p $(@D) && scripts/gen-page user/view > $@

# the generated headers have to exist before their includers are first compiled; -MMD tracks them afterwards
$(OUT)/%.o: %.c | $(SKEL) $(SKEL_NOLOOP) $(PROTO_H) $(SYSCALLS_H) $(PAGE_H)
	$(call say,CC,$<)
	$(Q)mkdir -p $(@D) && $(CC) $(CPPFLAGS) $(CFLAGS) -c -o $@ $<

ifneq ($(SAN),)
# what there is to warn of has been said, of the same files without sanitizers
$(OUT)/user/%.o: override CFLAGS := $(filter-out $(WARN),$(CFLAGS))
endif

$(OUT)/tests/unit/%: $(OUT)/tests/unit/%.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

# compares with it, which bpfprof loads where it is needed
$(OUT)/tests/unit/test_insn: LDLIBS += -lcapstone
# is kept waiting, and counts what is compared
$(OUT)/tests/unit/test_procs: LDLIBS += -Wl,--wrap=reader__open -Wl,--wrap=hash__add -Wl,--wrap=hash__next
# sets the clock, and sees when probes come and go
$(OUT)/tests/unit/test_capture: LDLIBS += -Wl,--wrap=util_realtime_shift_ns -Wl,--wrap=heap_probes__attach \
	-Wl,--wrap=heap_probes__detach -Wl,--wrap=heap_probes__clean_children -Wl,--wrap=heap_probes__drop \
	-Wl,--wrap=heap__end_slice -Wl,--wrap=heap__update -Wl,--wrap=probe_heap__live -Wl,--wrap=probe_fds__start
# fails to find a table, or to open a file
$(OUT)/tests/unit/test_collect: LDLIBS += -Wl,--wrap=objects__unwind_table -Wl,--wrap=procs__open -Wl,--wrap=util_monotonic_ns \
	-Wl,--wrap=raw_unwind
# moves the clock, instead of waiting
$(OUT)/tests/unit/test_heap_probes: LDLIBS += -Wl,--wrap=objects__allocators
# has links of its own, and moves the clock
$(OUT)/tests/unit/test_attachments: LDLIBS += -Wl,--wrap=uprobes__point_cnt -Wl,--wrap=uprobes__detach \
	-Wl,--wrap=uprobes__clean_children -Wl,--wrap=util_monotonic_ns

$(OUT)/tests/unit/test_cpu_time $(OUT)/tests/unit/test_rest: LDLIBS += -Wl,--wrap=util_monotonic_ns
# refuses memory
$(OUT)/tests/unit/test_names_cache: LDLIBS += -Wl,--wrap=calloc -Wl,--wrap=realloc
# counts what is opened, and is ahead of the clock
$(OUT)/tests/unit/test_dwarf_kept: LDLIBS += -Wl,--wrap=dwarf_file__open -Wl,--wrap=clock_gettime
# fills the memory while it is compared
$(OUT)/tests/unit/test_copies: LDLIBS += -Wl,--wrap=proofs__range
# counts what is compared
$(OUT)/tests/unit/test_profile: LDLIBS += -Wl,--wrap=strtab__get
# a sum that grows fast
$(OUT)/tests/unit/test_dump $(OUT)/tests/unit/test_view_text: LDLIBS += -Wl,--wrap=profile__bytes
# and less memory than there is
$(OUT)/tests/unit/test_dump: LDLIBS += -Wl,--wrap=memory_max
# has no tables, and says itself how large they are
$(OUT)/tests/unit/test_windows: LDLIBS += -Wl,--wrap=tables__bytes
# counts what files are read for
$(OUT)/tests/unit/test_symbolize: LDLIBS += -Wl,--wrap=reader__names
# dies of what is read, or takes long
$(OUT)/tests/unit/test_debug_files: LDLIBS += -Wl,--wrap=reader__names -Wl,--wrap=util_monotonic_ns

# counts who is asked, and stops the clock
$(OUT)/tests/unit/test_services: LDLIBS += -Wl,--wrap=objects__read_environ -Wl,--wrap=procs__find_contexts \
	-Wl,--wrap=util_monotonic_ns

# sends to a store
$(OUT)/tests/unit/test_transfer: LDLIBS += -lcurl
# is the courier, and moves the clock
$(OUT)/tests/unit/test_push: LDLIBS += -Wl,--wrap=util_find_part -Wl,--wrap=helper_start -Wl,--wrap=util_monotonic_ns
# waits for what is read, each time, and counts what is done meanwhile
$(OUT)/tests/unit/test_custom_found: LDLIBS += -Wl,--wrap=objects__meanwhile -Wl,--wrap=recordings__meanwhile
# a machine of some CPUs, and what cannot be opened there
$(OUT)/tests/unit/test_cpus_left_out: LDLIBS += -Wl,--wrap=cpus_possible -Wl,--wrap=cpus_online -Wl,--wrap=syscall \
	-Wl,--wrap=bpf_program__attach_perf_event -Wl,--wrap=bpf_link__destroy
# counts what is asked for
$(OUT)/tests/unit/test_cpus: LDLIBS += -Wl,--wrap=uprobes_probe -Wl,--wrap=waits_how__probe -Wl,--wrap=probe_fds__how \
	-Wl,--wrap=sample_rate__cost_ns
# fails where the test wants it to
$(OUT)/tests/unit/test_hash: LDLIBS += -Wl,--wrap=calloc
$(OUT)/tests/unit/test_stores: LDLIBS += -Wl,--wrap=gzip_writer__init
$(OUT)/tests/unit/test_cgroups: LDLIBS += -Wl,--wrap=open_by_handle_at -Wl,--wrap=pod_names__find \
	-Wl,--wrap=container_names__find -Wl,--wrap=util_monotonic_ns

# goes through millions of steps
$(OUT)/tests/bpf/test_wait_machine.o: override CFLAGS += -O2

$(OUT)/tests/bpf/%: $(OUT)/tests/bpf/%.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) $(LDFLAGS) -o $@ $^ $(LDLIBS) -lcmocka

# Goes into other programs: no sanitizers, exceptions pass through it, nothing is looked up in the middle of malloc.
PRELOAD_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -fPIC -ftls-model=initial-exec -fvisibility=hidden -fexceptions \
	-fno-omit-frame-pointer -fcf-protection -Wl,-z,now -Wl,-z,defs -Iuser -Ibpf
PRELOAD_LDFLAGS = $(if $(SAN),,$(filter-out -fsanitize% -static%,$(LDFLAGS)))

$(PRELOAD): user/preload/heap.c user/preload/loads.c user/preload/starts.c user/preload/heap.h user/preload/next.h \
		user/preload/probes.h user/preload/loader.h user/base/sanitizers.h bpf/sample.h
	$(call say,SHARED,$@)
	$(Q)mkdir -p $(@D) && $(CC) $(PRELOAD_CFLAGS) $(PRELOAD_LDFLAGS) -shared -o $@ $(filter %.c,$^)

# listens to the library from within a program that does what is known; no compiler may know better
$(OUT)/tests/unit/preload_prog: tests/unit/preload_prog.cc
	$(call say,CXX,$@)
	$(Q)mkdir -p $(@D) && $(CXX) -std=gnu++17 -Wall -Wextra -Werror -O1 -g -fno-builtin -Wno-mismatched-new-delete \
		-Wno-use-after-free -Wno-alloc-size-larger-than -o $@ $< -lpthread

$(OUT)/tests/unit/test_preload: | $(PRELOAD) $(OUT)/tests/unit/preload_prog

unit: $(UNIT) $(HOST_BPF)

# ---- tests, see scripts/run-tests; results are in $(OUT)/results ----
include tests/progs/progs.mk
export PPROF = $(abspath $(PROGS_DIR))/pprof

SUITE := check
RESULTS = $(OUT)/results/$(SUITE)
RUN = scripts/run-tests --results $(RESULTS)
# at once, unless they wait
TEST_JOBS := 3
FORMATTED = $(sort $(wildcard $(foreach d,bpf include/* user user/* tests/*,$(d)/*.c $(d)/*.h)))
E2E_TESTS = $(filter-out %.c %.h %.mk,$(wildcard tests/e2e/test_* tests/hostile/test_* tests/faults/test_*))
BUILD_FUZZERS = tests/fuzz/build-fuzzers $(CLANG) $(MAKE) --no-print-directory fuzzers

TABLES := $(OUT)/tests/tables/compare $(OUT)/tests/tables/flow

$(TABLES): %: %.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)

# What does not need one another runs at the same time, as far as make's -j goes: builds that leave a processor idle at their end, and
# tests that wait. Unit tests run once, with sanitizers.
CHECK_PARTS := $(addprefix check-part-,layers format docs unit tables fuzz model)
.PHONY: $(CHECK_PARTS) check-begin build-san-unit build-fuzzers
check-root: SUITE := check-root
check-page: SUITE := check-page

check: $(CHECK_PARTS)
	$(Q)$(RUN) --sum

check-begin: all
	$(Q)rm -f $(RESULTS) $(RESULTS).times

check-part-layers: check-begin
	$(Q)$(RUN) --as layers -- scripts/check-layers || :

check-part-format: check-begin
	$(Q)$(RUN) --as format -- scripts/check-format $(FORMATTED) || :

check-part-docs: check-begin
	$(Q)$(RUN) --as 'manual and completions' -- scripts/check-docs $(OUT)/bpfprof || :

build-san-unit: check-begin
	$(Q)+$(RUN) --as 'build the unit tests, with sanitizers' -- $(MAKE) --no-print-directory SAN=1 OUT=$(OUT)/san unit || :

check-part-unit: build-san-unit progs
	$(Q)PROGS=$(PROGS_DIR) $(RUN) --jobs $(TEST_JOBS) $(patsubst $(OUT)/%,$(OUT)/san/%,$(UNIT) $(HOST_BPF)) || :

check-part-model: check-begin
	$(Q)$(RUN) tests/page/test_model || :

check-part-tables: check-begin $(TABLES)
	$(Q)$(RUN) --as 'tables against readelf' -- tests/tables/run $(OUT)/tests/tables/compare || :

build-fuzzers: check-begin
	$(Q)+$(RUN) --as 'build the fuzzers' -- $(BUILD_FUZZERS) || :

check-part-fuzz: build-fuzzers progs
	$(Q)OUT=$(OUT) PROGS=$(PROGS_DIR) $(RUN) tests/fuzz/test_fuzz || :

check-root: all progs
	$(Q)[ "$$(id -u)" = 0 ] || { echo 'check-root: needs root: sudo make check-root' >&2; exit 1; }
	$(Q)rm -f $(RESULTS) $(RESULTS).times
	$(Q)+$(RUN) --as 'build the fuzzers' -- $(BUILD_FUZZERS) || :
	$(Q)$(RUN) --timeout 600 --jobs $(TEST_JOBS) $(E2E_TESTS) || :
	$(Q)$(RUN) --sum

# ---- fuzzing: libFuzzer and both sanitizers on the readers of foreign bytes; FUZZ_SECONDS for each ----
FUZZ_OUT := $(OUT)/fuzz
FUZZ_TARGETS := $(patsubst tests/fuzz/fuzz_%.c,%,$(wildcard tests/fuzz/fuzz_*.c))
FUZZ_LIB := $(FUZZ_OUT)/readers.a
FUZZ_SAN := -fsanitize=address,undefined -fno-sanitize-recover=undefined
FUZZ_SECONDS ?= 600
.PHONY: fuzz fuzzers

$(FUZZ_OUT)/%.o: %.c
	$(call say,FUZZ,$<)
	$(Q)mkdir -p $(@D) && $(CLANG) $(CPPFLAGS) -std=gnu11 $(WARN) -O1 -g1 -fno-omit-frame-pointer $(FUZZ_SAN) -fsanitize=fuzzer-no-link \
		-c -o $@ $<

# what no fuzzer calls is not compiled for them
FUZZ_WITHOUT := $(addprefix user/base/,knobs.c listen.c log.c output.c json.c) \
	$(addprefix user/target/,procs.c procs_events.c proc_space.c process_files.c perf_maps.c map_log.c objects.c objects_debug.c readers.c fetched.c file_stat.c \
		roots.c cgroups.c cgroup_path.c pod_names.c container_names.c services.c names_cache.c split_names.c debugfile.c proof.c)

$(FUZZ_LIB): $(patsubst %.c,$(FUZZ_OUT)/%.o,$(filter-out $(FUZZ_WITHOUT),$(wildcard user/base/*.c user/helper/*.c user/target/*.c)) \
		$(addprefix user/profile/,profile.c finish.c ranks.c canon.c pprof.c pprof_read.c gzip_writer.c gunzip.c id_map.c proto_read.c \
			legacy_read.c legacy_text.c legacy_read_cpu.c legacy_read_heap.c legacy_read_lines.c legacy_read_maps.c legacy_read_symbols.c) \
		tests/fuzz/parsers.c tests/fuzz/image.c) $(PROTO_O)
	$(Q)rm -f $@ && $(AR) rcs $@ $^

$(FUZZ_OUT)/fuzz_%: $(FUZZ_OUT)/tests/fuzz/fuzz_%.o $(FUZZ_LIB)
	$(Q)$(CLANG) $(FUZZ_SAN) -fsanitize=fuzzer -o $@ $^ $(LDLIBS)

$(FUZZ_OUT)/parse: $(FUZZ_OUT)/tests/fuzz/parse.o $(FUZZ_LIB)
	$(Q)$(CLANG) $(FUZZ_SAN) -o $@ $^ $(LDLIBS)

fuzzers: $(FUZZ_TARGETS:%=$(FUZZ_OUT)/fuzz_%) $(FUZZ_OUT)/parse

fuzz: progs
	$(Q)+$(BUILD_FUZZERS)
	$(Q)OUT=$(OUT) PROGS=$(PROGS_DIR) FUZZ_SECONDS=$(FUZZ_SECONDS) FUZZ_COPIES=10000 tests/fuzz/test_fuzz

# a program of the tests in tests/hostile
$(PROGS_DIR)/mapped: tests/hostile/mapped.c
	$(call PROGS_CC,gcc)

progs: $(PROGS_DIR)/mapped

# what `view -f html` writes, in Chromium ($CHROMIUM) by mouse and keyboard
check-page: $(OUT)/bpfprof
	$(Q)rm -f $(RESULTS) $(RESULTS).times
	$(Q)BPFPROF=$(OUT)/bpfprof $(RUN) tests/page/test_model tests/page/test_browser

# every kind, on the kernels of Debian's releases
check-kernels: $(OUT)/bpfprof $(PRELOAD) progs
	$(Q)scripts/check-kernels $(OUT) $(KERNELS)

# ---- what it costs, against others, in one run ----
BENCH := $(addprefix $(OUT)/tests/bench/,deep_fp deep_nofp walkcost herd node tables symbols heap_pairs heap_links \
	cputime.so switches offcpu pausable $(if $(shell $(GO) version 2>/dev/null),deep_go))

$(OUT)/tests/bench/deep_fp: tests/bench/deep.c
	$(Q)mkdir -p $(@D) && $(CC) -O2 -g -fno-omit-frame-pointer -mno-omit-leaf-frame-pointer -o $@ $<

$(OUT)/tests/bench/deep_nofp: tests/bench/deep.c
	$(Q)mkdir -p $(@D) && $(CC) -O2 -g -fomit-frame-pointer -o $@ $<

$(OUT)/tests/bench/deep_go: tests/bench/deep.go
	$(Q)mkdir -p $(@D) && $(GO) build -o $@ $<

$(BASE)/gen/fpwalk.skel.h: $(OUT)/tests/bench/fpwalk.bpf.o
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name fpwalk > $@

$(OUT)/tests/bench/walkcost.o: $(BASE)/gen/fpwalk.skel.h

$(BASE)/gen/offcpu.skel.h: $(OUT)/tests/bench/offcpu.bpf.o
	$(Q)mkdir -p $(@D) && $(BPFTOOL) gen skeleton $< name offcpu > $@

$(OUT)/tests/bench/offcpu.o: $(BASE)/gen/offcpu.skel.h

$(OUT)/tests/bench/switches: tests/bench/switches.c
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -o $@ $< -lpthread

$(OUT)/tests/bench/heap_pairs: tests/bench/heap_pairs.c
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -fno-builtin -o $@ $< -lpthread

$(OUT)/tests/bench/cputime.so: tests/bench/cputime.c
	$(Q)mkdir -p $(@D) && $(CC) -std=gnu11 -D_GNU_SOURCE $(WARN) -O2 -g -fPIC -shared -o $@ $<

WRAPPED := session__arm capture_waits_tick heap__tick heap__end_slice heap__next_ns heap_probes__new
$(OUT)/tests/bench/pausable: LDLIBS += $(WRAPPED:%=-Wl,--wrap=%)

$(OUT)/tests/bench/%: $(OUT)/tests/bench/%.o $(LIB)
	$(call say,LINK,$@)
	$(Q)$(CC) $(CFLAGS) -o $@ $^ $(LDLIBS)

# not `all`: its link ./bpfprof is that of another build folder, where OUT names one
bench: $(OUT)/bpfprof $(PRELOAD) $(BENCH)
	$(Q)tests/bench/run $(OUT) $(BENCH_ARGS)

figures: all progs fuzzers $(TABLES) $(OUT)/tests/unit/test_reader $(OUT)/tests/unit/test_judge
	$(Q)OUT=$(OUT) PROGS=$(PROGS_DIR) tests/figures

# every pair of frames, of programs of many runtimes under load, against the code
callcheck: all progs
	$(Q)PROGS=$(PROGS_DIR) BPFPROF=$(OUT)/bpfprof tests/tools/callcheck-programs $(CALLCHECK_ARGS)

soak: all progs $(OUT)/tests/bench/node
	$(Q)PROGS=$(PROGS_DIR) tests/soak/run $(SOAK_SECONDS)
	$(Q)PROGS=$(PROGS_DIR) tests/soak/windows $(SOAK_SECONDS)
	$(Q)PROGS=$(PROGS_DIR) tests/soak/agent $(SOAK_SECONDS)

format:
	clang-format -i $(FORMATTED)

# ---- installing ----

# what is put where: source, mode, and path below PREFIX
INSTALLED := $(OUT)/bpfprof:755:sbin/bpfprof $(COURIER):755:lib/bpfprof/bpfprof-courier \
	$(PRELOAD):755:lib/bpfprof/libbpfprof-heap.so packaging/bpfprof-agent.service:644:lib/systemd/system/bpfprof-agent.service \
	$(foreach p,$(wildcard man/*.[1-9]),$(p):644:share/man/man$(subst .,,$(suffix $(p)))/$(notdir $(p))) \
	scripts/completion/bpfprof.bash:644:share/bash-completion/completions/bpfprof \
	scripts/completion/_bpfprof:644:share/zsh/site-functions/_bpfprof \
	include/bpfprof/profile.h:644:include/bpfprof/profile.h \
	packaging/ci/bpfprof-bench-ci:755:share/bpfprof/ci/bpfprof-bench-ci \
	$(foreach f,github/action.yml github/example.yml gitlab/bpfprof.yml,packaging/ci/$(f):644:share/bpfprof/ci/$(f)) \
	README.md:644:share/doc/bpfprof/README.md LICENSE:644:share/doc/bpfprof/LICENSE
# folders that are nobody else's
INSTALLED_FOLDERS := include/bpfprof lib/bpfprof share/doc/bpfprof share/bpfprof/ci/github share/bpfprof/ci/gitlab share/bpfprof/ci share/bpfprof
part = $(word $(1),$(subst :, ,$(2)))
# a line of the recipe
define install_one
	install -D -m $(call part,2,$(1)) $(call part,1,$(1)) '$(DESTDIR)$(PREFIX)/$(call part,3,$(1))'

endef
AGENT_CONF = $(DESTDIR)$(SYSCONFDIR)/bpfprof/agent.conf

# a configuration that is there is the administrator's
define install_all
	$(foreach i,$(INSTALLED),$(call install_one,$(i)))
	sed -i 's|/usr/sbin/|$(PREFIX)/sbin/|; s|/etc/|$(SYSCONFDIR)/|' '$(DESTDIR)$(PREFIX)/lib/systemd/system/bpfprof-agent.service'
	sed -i 's|/usr/share/|$(PREFIX)/share/|' '$(DESTDIR)$(PREFIX)/share/bpfprof/ci/gitlab/bpfprof.yml'
	[ -e '$(AGENT_CONF)' ] || install -D -m 644 packaging/agent.conf '$(AGENT_CONF)'
endef

install deb rpm: WERROR =

install: all
	$(install_all)

uninstall:
	rm -f $(foreach i,$(INSTALLED),'$(DESTDIR)$(PREFIX)/$(call part,3,$(i))')
	for d in $(INSTALLED_FOLDERS); do rmdir '$(DESTDIR)$(PREFIX)'/$$d 2>/dev/null || :; done
	! cmp -s packaging/agent.conf '$(AGENT_CONF)' || rm '$(AGENT_CONF)'
	rmdir '$(DESTDIR)$(SYSCONFDIR)/bpfprof' 2>/dev/null || :

# packages, of the libraries that are here
PACKAGE_deb = $(OUT)/bpfprof_$(VERSION)_amd64.deb
PACKAGE_rpm = $(OUT)/bpfprof-$(VERSION)-1.x86_64.rpm

deb rpm: override DESTDIR = $(abspath $(OUT))/stage-$@
deb rpm: override PREFIX = /usr
deb rpm: override SYSCONFDIR = /etc
deb rpm: all
	$(Q)rm -rf '$(DESTDIR)'
	$(install_all)
	$(Q)packaging/build-$@ '$(DESTDIR)' $(VERSION) $(PACKAGE_$@)
	$(Q)rm -rf '$(DESTDIR)'
	@echo $(PACKAGE_$@)

# what is committed, to be built and installed without git
DIST := bpfprof-$(VERSION)

dist:
	$(Q)git diff --quiet HEAD || echo 'dist: what is not committed is not in it' >&2
	$(Q)mkdir -p $(OUT)
	$(Q)git archive --format=tar.gz --prefix=$(DIST)/ -o $(OUT)/$(DIST).tar.gz HEAD
	@echo $(OUT)/$(DIST).tar.gz

clean:
	rm -rf build bpfprof

-include $(shell find $(OUT) -name '*.d' 2>/dev/null)

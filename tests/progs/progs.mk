# SPDX-License-Identifier: BSD-2-Clause
# The test programs with known stacks (stacks.txt), in $(OUT)/tests/progs. Their flags are part of what they test: CFLAGS stays out.

PROGS_DIR := $(OUT)/tests/progs
PROGS_SRC := tests/progs
PROGS_FLAGS := -std=gnu11 -O2 -fomit-frame-pointer -Wall -Wextra -D_GNU_SOURCE -fno-stack-protector
# What Go keeps is not in the home folder, which root may not have; but what it has compiled before, its library and pprof, is
# taken from its cache, if there is one that can be written.
GO_CACHE := $(shell d=$$(go env GOCACHE 2>/dev/null) && mkdir -p "$$d" 2>/dev/null && [ -w "$$d" ] && echo "$$d")
GO := HOME=$(abspath $(OUT))/go GOCACHE=$(or $(GO_CACHE),$(abspath $(OUT))/go) GO111MODULE=off go
PROGS_CC = $(Q)mkdir -p $(@D) && $(1) $(PROGS_FLAGS) $(2) -o $@ $(filter %.c %.cc,$^) $(3)

ALLOC_C := alloc alloc_calls alloc_threads
WAITS_C := waits waits_raw waits_calls waits_lengths waits_seeded waits_many waits_crowd waits_long waits_off waits_wall waits_convoy waits_turns spawn parked touch
PROGS_SIMPLE := chain signals prologue frames recursion threads children coroutine vdso jit noreturn tailcall registers syscalls \
	short idle asleep late execs remapped turnover workload fds crowd alloc_itself
PROGS := $(PROGS_SIMPLE) chain-fp chain-static chain-static-pie chain-nopie chain-stripped chain-nosections chain-debugframe \
	chain-nowtables plt-lazy plt-now plt-ibt libtiny.so unsized libunsized.so paired libpaired.so libalpha.so libbeta.so \
	libalpha-noid.so libbeta-noid.so notable inlined busy known \
	custom \
	$(ALLOC_C) $(ALLOC_C:%=%-static) alloc_none liballoc_own.so liballoc_plt.so \
	$(WAITS_C) waits-static

# what needs more than gcc is left out where it is missing; the tests say so
PROGS += $(if $(shell command -v g++),names alloc_new alloc_new-static alloc_pool alloc_std alloc_std-static waits_std)
PROGS += $(if $(shell command -v musl-gcc),chain-musl chain-musl-static asleep-musl $(ALLOC_C:%=%-musl) waits-musl)
PROGS += $(if $(shell rustc --version 2>/dev/null),rusty waits_rust)
GO_FRAMES := go_frames go_frames-stripped go_frames-pie
GO_STACKS := go_stacks go_stacks-pie go_stacks-stripped go_cgo go_shared
PROGS += $(if $(shell $(GO) version 2>/dev/null),waits_go go_calls go_profiles pprof $(GO_STACKS) $(GO_FRAMES))
PROGS += $(if $(shell echo | gcc -m32 -nostdlib -c -x c -o /dev/null - 2>/dev/null && echo yes),bits32)

progs: $(addprefix $(PROGS_DIR)/,$(PROGS))

# what the dynamic linker does at the first call of a function is no known stack
$(addprefix $(PROGS_DIR)/,$(PROGS_SIMPLE)): $(PROGS_DIR)/%: $(PROGS_SRC)/%.c $(PROGS_SRC)/prog.h
	$(call PROGS_CC,gcc,-Wl$(comma)-z$(comma)now,-pthread)

# it says what it holds
$(PROGS_DIR)/custom: $(PROGS_SRC)/custom.c $(PROGS_SRC)/prog.h include/bpfprof/profile.h
	$(call PROGS_CC,gcc,-g -Iinclude -Wl$(comma)-z$(comma)now,-pthread)

$(PROGS_DIR)/chain-%: $(PROGS_SRC)/chain.c $(PROGS_SRC)/prog.h
	$(call PROGS_CC,$(if $(findstring musl,$*),musl-gcc,gcc),$(CHAIN_$(subst -,_,$*)))
	$(if $(CHAIN_$(subst -,_,$*)_THEN),$(Q)$(CHAIN_$(subst -,_,$*)_THEN) $@)

CHAIN_fp := -fno-omit-frame-pointer -DKEEP_FRAME_POINTER
CHAIN_static := -static
CHAIN_static_pie := -static-pie -fPIE
CHAIN_nopie := -no-pie -fno-pie
# of another build, else the names of chain are theirs where both are profiled
CHAIN_stripped := -Wl,--build-id=0x57
CHAIN_stripped_THEN := strip
CHAIN_nosections := -Wl,--build-id=0x05
# the header's e_shoff, e_shnum and e_shstrndx are cleared: only program headers are left
CHAIN_nosections_THEN := sh -c 'for at in 40:8 60:4; do head -c $${at\#*:} /dev/zero | dd of=$$0 bs=1 seek=$${at%:*} conv=notrunc status=none; done'
CHAIN_debugframe := -fno-asynchronous-unwind-tables -g
CHAIN_nowtables := -fno-asynchronous-unwind-tables -fno-omit-frame-pointer -DKEEP_FRAME_POINTER
CHAIN_musl_static := -static

$(PROGS_DIR)/libtiny.so: $(PROGS_SRC)/tiny.c
	$(call PROGS_CC,gcc,-shared -fPIC)

$(PROGS_DIR)/plt-%: $(PROGS_SRC)/plt.c $(PROGS_SRC)/prog.h $(PROGS_DIR)/libtiny.so
	$(call PROGS_CC,gcc,-fplt $(PLT_$*),-L$(PROGS_DIR) -ltiny -Wl$(comma)-rpath$(comma)'$$ORIGIN')

comma := ,
PLT_lazy := -Wl,-z,lazy
PLT_now := -Wl,-z,now
PLT_ibt := -fcf-protection -Wl,-z,lazy -Wl,-z,ibtplt

$(PROGS_DIR)/libunsized.so: $(PROGS_SRC)/unsized_lib.c $(PROGS_SRC)/prog.h
	$(call PROGS_CC,gcc,-shared -fPIC -Wno-unused-function -Wl$(comma)-s)

$(PROGS_DIR)/unsized: $(PROGS_SRC)/unsized.c $(PROGS_SRC)/prog.h $(PROGS_DIR)/libunsized.so
	$(call PROGS_CC,gcc,,-L$(PROGS_DIR) -lunsized -Wl$(comma)-rpath$(comma)'$$ORIGIN')

$(PROGS_DIR)/libpaired.so: $(PROGS_SRC)/paired_lib.c $(PROGS_SRC)/prog.h $(PROGS_SRC)/paired.ld
	$(call PROGS_CC,gcc,-shared -fPIC -nostdlib -Wno-unused-function -Wl$(comma)-T$(comma)$(PROGS_SRC)/paired.ld -Wl$(comma)-z$(comma)max-page-size=4096)

$(PROGS_DIR)/paired: $(PROGS_SRC)/paired.c $(PROGS_SRC)/prog.h $(PROGS_DIR)/libpaired.so
	$(call PROGS_CC,gcc,-Wl$(comma)-z$(comma)now,-L$(PROGS_DIR) -lpaired -Wl$(comma)-rpath$(comma)'$$ORIGIN')

$(PROGS_DIR)/asleep-musl: $(PROGS_SRC)/asleep.c $(PROGS_SRC)/prog.h
	$(call PROGS_CC,musl-gcc)

LATE_alpha := -DLIB=alpha -DFRAME=600
LATE_beta := -DLIB=beta -DFRAME=3000

$(PROGS_DIR)/libalpha.so $(PROGS_DIR)/libbeta.so: $(PROGS_DIR)/lib%.so: $(PROGS_SRC)/late_lib.c
	$(call PROGS_CC,gcc,-shared -fPIC $(LATE_$*))

$(PROGS_DIR)/libalpha-noid.so $(PROGS_DIR)/libbeta-noid.so: $(PROGS_DIR)/lib%-noid.so: $(PROGS_SRC)/late_lib.c
	$(call PROGS_CC,gcc,-shared -fPIC $(LATE_$*) -Wl$(comma)--build-id=none)

$(PROGS_DIR)/notable.o: $(PROGS_SRC)/notable.c $(PROGS_SRC)/prog.h
	$(call PROGS_CC,gcc,-c -fno-omit-frame-pointer -DKEEP_FRAME_POINTER -fno-asynchronous-unwind-tables)

$(PROGS_DIR)/notable: $(PROGS_SRC)/notable_main.c $(PROGS_DIR)/notable.o
	$(call PROGS_CC,gcc,,$(PROGS_DIR)/notable.o)

$(PROGS_DIR)/inlined: $(PROGS_SRC)/inlined.c $(PROGS_SRC)/prog.h
	$(call PROGS_CC,gcc,-g)

$(PROGS_DIR)/busy: $(PROGS_SRC)/busy.c
	$(call PROGS_CC,gcc,-g,-pthread -lm)

$(PROGS_DIR)/known: $(PROGS_SRC)/known.c $(PROGS_SRC)/prog.h
	$(call PROGS_CC,gcc,-g,-pthread)

$(PROGS_DIR)/bits32: $(PROGS_SRC)/bits32.c
	$(call PROGS_CC,gcc,-m32 -nostdlib -static -fno-pie -no-pie)

$(PROGS_DIR)/names: $(PROGS_SRC)/names.cc $(PROGS_SRC)/prog.h
	$(Q)mkdir -p $(@D) && g++ -O2 -fomit-frame-pointer -Wall -Wextra -D_GNU_SOURCE -o $@ $<

$(PROGS_DIR)/rusty: $(PROGS_SRC)/rusty.rs
	$(Q)mkdir -p $(@D) && MAKEFLAGS= rustc -O -o $@ $<

# ---- programs with a known heap ----
ALLOC_FLAGS := -fno-builtin -Wno-unused-function
ALLOC_H := $(PROGS_SRC)/alloc.h $(PROGS_SRC)/prog.h

$(ALLOC_C:%=$(PROGS_DIR)/%): $(PROGS_DIR)/%: $(PROGS_SRC)/%.c $(ALLOC_H)
	$(call PROGS_CC,gcc,$(ALLOC_FLAGS),-pthread)

$(ALLOC_C:%=$(PROGS_DIR)/%-static): $(PROGS_DIR)/%-static: $(PROGS_SRC)/%.c $(ALLOC_H)
	$(call PROGS_CC,gcc,$(ALLOC_FLAGS) -static -DNO_DLOPEN,-pthread)

$(ALLOC_C:%=$(PROGS_DIR)/%-musl): $(PROGS_DIR)/%-musl: $(PROGS_SRC)/%.c $(ALLOC_H)
	$(call PROGS_CC,musl-gcc,$(ALLOC_FLAGS) -static -DNO_DLOPEN,-pthread)

$(PROGS_DIR)/alloc_new $(PROGS_DIR)/alloc_new-static: $(PROGS_SRC)/alloc_new.cc $(ALLOC_H)
$(PROGS_DIR)/alloc_pool: $(PROGS_SRC)/alloc_pool.cc $(ALLOC_H)
$(PROGS_DIR)/alloc_new $(PROGS_DIR)/alloc_new-static $(PROGS_DIR)/alloc_pool:
	$(Q)mkdir -p $(@D) && g++ -std=gnu++17 -O2 -fomit-frame-pointer -Wall -Wextra -D_GNU_SOURCE $(ALLOC_FLAGS) \
		$(if $(findstring static,$@),-static) -o $@ $<

$(PROGS_DIR)/alloc_std $(PROGS_DIR)/alloc_std-static: $(PROGS_SRC)/alloc_std.cc $(PROGS_SRC)/prog.h
	$(Q)mkdir -p $(@D) && g++ -std=gnu++17 -O2 -g -fomit-frame-pointer -Wall -Wextra -D_GNU_SOURCE -fno-builtin-malloc \
		$(if $(findstring static,$@),-static) -o $@ $<

$(PROGS_DIR)/liballoc_own.so: $(PROGS_SRC)/alloc_own.c
	$(call PROGS_CC,gcc,-shared -fPIC -fno-builtin)

$(PROGS_DIR)/liballoc_plt.so: $(PROGS_SRC)/alloc_plt.c
	$(call PROGS_CC,gcc,-shared -fPIC -fno-builtin)

$(PROGS_DIR)/alloc_none: $(PROGS_SRC)/alloc_none.c
	$(call PROGS_CC,gcc,-nostdlib -static -fno-pie -no-pie)

# ---- programs with known waits ----
$(WAITS_C:%=$(PROGS_DIR)/%): $(PROGS_DIR)/%: $(PROGS_SRC)/%.c $(PROGS_SRC)/waits.h $(PROGS_SRC)/prog.h
	$(call PROGS_CC,gcc,,-pthread)

$(PROGS_DIR)/parked: PROGS_FLAGS += -g

$(PROGS_DIR)/waits-static: $(PROGS_SRC)/waits.c $(PROGS_SRC)/waits.h $(PROGS_SRC)/prog.h
	$(call PROGS_CC,gcc,-static,-pthread)

$(PROGS_DIR)/waits-musl: $(PROGS_SRC)/waits.c $(PROGS_SRC)/waits.h $(PROGS_SRC)/prog.h
	$(call PROGS_CC,musl-gcc,-static,-pthread)

$(PROGS_DIR)/waits_std: $(PROGS_SRC)/waits_std.cc $(PROGS_SRC)/waits.h $(PROGS_SRC)/prog.h
	$(Q)mkdir -p $(@D) && g++ -std=gnu++20 -O2 -fomit-frame-pointer -Wall -Wextra -Wno-volatile -D_GNU_SOURCE -o $@ $< -pthread

$(PROGS_DIR)/waits_rust: $(PROGS_SRC)/waits_rust.rs
	$(Q)mkdir -p $(@D) && MAKEFLAGS= rustc -O -o $@ $<

$(PROGS_DIR)/go_stacks: $(PROGS_SRC)/go_stacks.go
	$(Q)mkdir -p $(@D) && $(GO) build -o $@ $<
$(PROGS_DIR)/go_stacks-pie: $(PROGS_SRC)/go_stacks.go
	$(Q)mkdir -p $(@D) && $(GO) build -buildmode=pie -o $@ $<
$(PROGS_DIR)/go_stacks-stripped: $(PROGS_SRC)/go_stacks.go
	$(Q)mkdir -p $(@D) && $(GO) build -ldflags '-s -w' -o $@ $<
$(PROGS_DIR)/go_cgo: $(PROGS_SRC)/go_cgo.go
	$(Q)mkdir -p $(@D) && $(GO) build -o $@ $<
$(PROGS_DIR)/libgo_cgo.so: $(PROGS_SRC)/go_cgo.go
	$(Q)mkdir -p $(@D) && $(GO) build -buildmode=c-shared -o $@ $<
$(PROGS_DIR)/go_shared: $(PROGS_SRC)/go_shared.c $(PROGS_DIR)/libgo_cgo.so
	$(Q)$(CC) -O2 -g -o $@ $< -L$(@D) -lgo_cgo -Wl,-rpath,'$$ORIGIN' -pthread

$(PROGS_DIR)/waits_go: $(PROGS_SRC)/waits_go.go
	$(Q)mkdir -p $(@D) && $(GO) build -o $@ $<

$(PROGS_DIR)/go_calls: $(PROGS_SRC)/go_calls.go
	$(Q)mkdir -p $(@D) && $(GO) build -o $@ $<

$(PROGS_DIR)/go_profiles: $(PROGS_SRC)/go_profiles.go
	$(Q)mkdir -p $(@D) && $(GO) build -o $@ $<

$(PROGS_DIR)/go_frames: $(PROGS_SRC)/go_frames.go
	$(Q)mkdir -p $(@D) && $(GO) build -o $@ $<

$(PROGS_DIR)/go_frames-%: $(PROGS_SRC)/go_frames.go
	$(Q)mkdir -p $(@D) && $(GO) build $(GO_FRAMES_$*) -o $@ $<

GO_FRAMES_stripped := -ldflags '-s -w'
GO_FRAMES_pie := -buildmode=pie

# Two that begin at once would both compile Go's standard library: the first does it for the others, and so for what may lie anywhere.
$(addprefix $(PROGS_DIR)/,pprof waits_go go_calls go_profiles go_cgo go_frames go_frames-stripped go_stacks-stripped go_stacks-pie): | $(PROGS_DIR)/go_stacks
$(addprefix $(PROGS_DIR)/,libgo_cgo.so go_frames-pie): | $(PROGS_DIR)/go_stacks-pie

# Go's reader of profiles. Up to 1.24 it comes with Go; later ones compile it, here once and not at each call.
$(PROGS_DIR)/pprof:
	$(Q)mkdir -p $(@D) && { cp "$$($(GO) env GOTOOLDIR)/pprof" $@ 2>/dev/null || CGO_ENABLED=0 $(GO) build -o $@ cmd/pprof; }

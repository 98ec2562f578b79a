/* SPDX-License-Identifier: BSD-2-Clause */
/* What the files of target/flow.h share. */
#ifndef TARGET_FLOW_PARTS_H
#define TARGET_FLOW_PARTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "target/flow.h"
#include "target/frame_state.h"
#include "target/insn.h"

struct elf_file;

/*
 * ---- flow_code.c: the code of an object that nothing describes, in memory: its bytes by position, in
 * runs of addresses ----
 */

struct flow_run {
	uint64_t start, end;
	uint32_t at; /* position of its first byte */
};

struct flow_code {
	struct flow_run *runs; /* ascending */
	size_t run_cnt, run_cap;
	uint8_t *bytes;
	size_t sz;
};

/*
 * Finds what the object has of executable sections, or of executable segments where it has no
 * sections, and is in no covered range. There are no runs if that is but little. 0 or -ENOMEM.
 */
int flow_code__find(struct flow_code *c, const struct elf_file *elf,
		    const struct flow_range *covered, size_t covered_cnt);
/* Reads its bytes; leaves out runs of padding, and what cannot be read. 0 or -ENOMEM. */
int flow_code__read(struct flow_code *c, const struct elf_file *elf);
void flow_code__done(struct flow_code *c);

/* The run that holds the address, or position; NULL if none does. */
const struct flow_run *flow_code__run(const struct flow_code *c, uint64_t addr);
const struct flow_run *flow_code__run_at(const struct flow_code *c, uint32_t at);

/* The position of an address; false if it is none of this code. */
bool flow_code__at(const struct flow_code *c, uint64_t addr, uint32_t *ret_at);

/* Is that nothing but what fills the room between functions: nop, int3, zeros? */
bool flow_code__is_padding(const uint8_t *p, size_t sz);

/* Decodes the instruction at a position of the run; false if it is none, or is cut. */
static inline bool flow_code__decode(const struct flow_code *c, const struct flow_run *r,
				     uint32_t at, struct insn *ret)
{
	return insn_decode(c->bytes + at, r->end - r->start - (at - r->at), ret);
}

/* ---- flow_entries.c: where functions begin, as far as other parts of the object tell ---- */

enum flow_hint {
	FLOW_SURE,  /* it is called, or a symbol says that it is a function */
	FLOW_TAKEN, /* code takes its address */
	FLOW_TABLE, /* data has its address: it may be a label that is jumped to */
	FLOW_WORD,  /* data has what may be its address */
	FLOW_LABEL, /* a symbol that does not say what it is */
};

struct flow_entry {
	uint64_t addr;
	uint64_t size;	/* as the symbol says; 0: not known */
	uint8_t hint;	/* enum flow_hint */
	bool never;	/* its name says that it never returns */
	uint32_t sized; /* 1 + the last entry up to this one with a size, or 0 */
};

struct flow_entries {
	struct flow_entry *v;
	size_t cnt, cap;
};

/* Of symbols, relocations, the header, the covered code, which calls or takes addresses, and, if the
 * object is loaded where it says (fixed), of its data. By ascending address, of equal ones the surest
 * first. 0 or -ENOMEM. */
int flow_entries__find(struct flow_entries *e, const struct elf_file *elf, bool fixed,
		       const struct flow_code *code, const struct flow_range *covered,
		       size_t covered_cnt);
void flow_entries__done(struct flow_entries *e);

int flow_entries__add(struct flow_entries *e, struct flow_entry entry);

/* ---- flow_entries.c: functions that are known never to return, by name: C, C++, what compilers
 * call ---- */

/* `own`: the object defines it itself. Its code is there to be followed, and only a reserved name
 * cannot be that of something else, too. */
bool flow_never_returns(const char *name, bool own);

/* The GOT entries that the dynamic linker fills with the addresses of such functions, ascending. */
struct flow_extern {
	uint64_t *v;
	size_t cnt, cap;
};

/* 0 or -ENOMEM. */
int flow_extern__find(struct flow_extern *x, const struct elf_file *elf);
void flow_extern__done(struct flow_extern *x);

/* Is that such an entry? */
bool flow_extern__has(const struct flow_extern *x, uint64_t got);

/* ---- flow_funcs.c: places, states, functions and ways ---- */

/* What a place in the code has: whether a function begins there, the function that led to it first,
 * and the number of what is known of its frame, 0 if nothing has led there yet. */
#define FLOW_STATE_BITS 14
#define FLOW_MAX_STATES (1U << FLOW_STATE_BITS)
#define PLACE_ENTRY (1U << 31)
#define PLACE(func, state) ((func) << FLOW_STATE_BITS | (state))
#define PLACE_STATE(place) ((place) & (FLOW_MAX_STATES - 1))
#define PLACE_FUNC(place) (((place) & ~PLACE_ENTRY) >> FLOW_STATE_BITS)
_Static_assert(FLOW_MAX_FUNCS == 1U << (31 - FLOW_STATE_BITS), "all of a place's bits");

#define FLOW_PLACES 4096 /* 16 KiB: a file may claim much more code than it has */

#define FLOW_NONE UINT32_MAX
#define FLOW_MAX_WAYS (1U << 20) /* to be followed, and waits, at a time */
#define FLOW_LEAS 1024

struct func {
	uint32_t at;
	uint32_t waits; /* number of the first one; FLOW_NONE */
	uint16_t state; /* at its first instruction */
	uint8_t hint;	/* enum flow_hint */
	bool returns;	/* or may do so */
	bool never;	/* its name says that it does not */
	bool open;	/* a jump of it leads to where it is not known */
	bool odd;	/* it does not return with the rsp that it had */
	bool strict;	/* it was odd: what is called there and followed by padding never returns */
	bool dubious;	/* it is no code, or odd all the same */
	bool not_first; /* it returns although it has no caller */
};

/* Until a function is known to return: a way, or another function (at FLOW_NONE), of which this is
 * true then, too. */
struct wait {
	uint32_t next;
	uint32_t at, state, func;
};

struct way {
	uint32_t at, func;
	uint16_t state;
	uint16_t bound; /* an index is below it, as was just found; 0: not known */
};

/* The last address of data that a function has put into a register. */
struct lea {
	uint32_t func;
	uint8_t reg;
	uint64_t to;
};

struct func_at {
	uint32_t at, func;
};

struct flow {
	const struct elf_file *elf;
	struct flow_code code;
	struct flow_range text; /* what holds that and all covered code */
	struct flow_extern never_return;
	struct flow_entries entries; /* those of symbols first, then those found on the way */
	uint32_t **places;	     /* pages of FLOW_PLACES each; NULL: all of them 0 */
	struct func *funcs;
	size_t func_cnt, func_cap;
	struct hash by_addr;	    /* struct func_at: functions by where they begin */
	struct frame_state *states; /* by number, from 1 on */
	size_t state_cnt, state_cap;
	struct hash by_state; /* uint16_t: their numbers */
	struct way *ways;
	size_t way_cnt, way_cap;
	struct wait *waits;
	size_t wait_cnt, wait_cap;
	uint8_t *targets;  /* a bit for each place: a jump leads there */
	uint32_t *run_ons; /* places that come behind a call and padding */
	size_t run_on_cnt, run_on_cap;
	struct lea leas[FLOW_LEAS];
	uint64_t steps_left;
	size_t table_left;
	bool fixed;  /* the object is loaded where it says: constants may be addresses */
	bool packed; /* functions are not aligned */
	bool follow_r12;
	bool again; /* a function was found to begin where a way had come by before */
	int err;
};

/* Errors are kept in f->err; after one, nothing is added any more. */

static inline uint32_t flow__place(const struct flow *f, uint32_t at)
{
	const uint32_t *page = f->places[at / FLOW_PLACES];

	return page ? page[at % FLOW_PLACES] : 0;
}
void flow__set_place(struct flow *f, uint32_t at, uint32_t place);

/* The number of a state: equal ones have the same. */
uint16_t flow__state_number(struct flow *f, const struct frame_state *s);

void flow__add_way(struct flow *f, uint32_t at, uint32_t func, uint16_t state, uint32_t bound);

/* The function that begins there; it is added, and a way through it, if it is new. FLOW_NONE if
 * there is no room. */
uint32_t flow__func_at(struct flow *f, uint32_t at, enum flow_hint hint);
/* The one that begins at a place with PLACE_ENTRY. */
uint32_t flow__func_of(const struct flow *f, uint32_t at);

/* Something is true once `func` is known to return: see struct wait. */
void flow__add_wait(struct flow *f, uint32_t func, uint32_t at, uint16_t state, uint32_t caller);
/* A function returns; and so do those that were found to if it does. */
void flow__set_returns(struct flow *f, uint32_t func);
/* `func` returns if `other` does. */
void flow__returns_with(struct flow *f, uint32_t func, uint32_t other);

/* flow_walk.c: follows all ways to their ends. */
void flow__walk_all(struct flow *f);

#endif

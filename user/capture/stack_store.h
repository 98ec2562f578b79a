/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The stacks that a capture knows: frames as addresses in mappings, and labels, taken while their
 * process is known. Each distinct stack has a number. It outlives windows: a stack goes when nobody
 * refers to it any more, and its number is given to another one then.
 */
#ifndef CAPTURE_STACK_STORE_H
#define CAPTURE_STACK_STORE_H

#include <linux/types.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpfprof.h"
#include "kinds.h"
#include "capture/symbolize.h"

struct cgroup;
struct code;
struct procs;
struct service;
struct stack_store;

#define STACK_NONE UINT32_MAX
#define STACK_STORE_MAX (1U << 24) /* stacks; as many locations */

struct stack_store_opts {
	/* pid, comm, program and control group on every stack: profiles of several processes */
	bool label_process;
	bool label_thread;
	bool label_service; /* what processes say of theirs: target/services.h */
};

/* What frames lie in. A range of a file is one mapping, in however many processes it stands, at the
 * addresses where it was met first. */
struct stack_mapping {
	uint64_t start, limit, offset; /* as struct profile_mapping has them */
	uint32_t owner;
	struct symbolize_source source;
	char *filename;
};

struct stack_location {
	uint32_t mapping; /* or STACK_NONE */
	bool marker;	  /* no code: `address` is the enum bpfprof_stack_result that it tells of */
	uint64_t address; /* see struct profile_location */
};

struct stack_labels {
	struct kind_label own[KIND_MAX_LABELS]; /* static strings */
	uint32_t own_cnt;
	uint32_t pid;
	char comm[BPFPROF_COMM_SZ + 1], thread[BPFPROF_COMM_SZ + 1];
	bool has_pid, has_comm, has_thread, has_exe;
	uint32_t exe;		 /* procs__file; see stack_store__exe */
	struct cgroup *cgroup;	 /* NULL: none, or not known */
	struct service *service; /* the same */
};

struct stack {
	uint8_t kind, result; /* enum bpfprof_kind, bpfprof_stack_result */
	uint64_t size;	      /* heap: bytes of the object; custom: number of the profile */
	struct stack_labels labels;
	uint32_t location_cnt;
	const uint32_t *locations; /* leaf first */
};

/* Borrows procs and code. NULL with errno. */
struct stack_store *stack_store__new(const struct stack_store_opts *opts, struct procs *procs,
				     struct code *code);
/* All references are gone with it. */
void stack_store__free(struct stack_store *s);

/*
 * The stack that rec describes: kernel frames, then user frames, then, if it is not whole, its
 * marker. proc: number of its process, or PROCS_NONE. Returns its number with a reference, which
 * the caller gives back by stack_store__unref; STACK_NONE if there is no memory or no room.
 */
uint32_t stack_store__add(struct stack_store *s, uint32_t proc, const struct bpfprof_rec *rec,
			  const uint64_t *kernel, const uint64_t *user, size_t user_cnt,
			  enum bpfprof_stack_result result);

void stack_store__ref(struct stack_store *s, uint32_t stack);
void stack_store__unref(struct stack_store *s, uint32_t stack);

/* Numbers are below this. */
size_t stack_store__end(const struct stack_store *s);
/* Stacks of a kind that there are. */
size_t stack_store__cnt(const struct stack_store *s, enum bpfprof_kind kind);

bool stack_store__has(const struct stack_store *s, uint32_t stack);
/* What it refers to is borrowed until the stack goes. There is one of this number. */
struct stack stack_store__get(const struct stack_store *s, uint32_t stack);
/* Borrowed until something is added. */
const struct stack_location *stack_store__location(const struct stack_store *s, uint32_t location);
const struct stack_mapping *stack_store__mapping(const struct stack_store *s, uint32_t mapping);
size_t stack_store__location_end(const struct stack_store *s);
size_t stack_store__mapping_end(const struct stack_store *s);

/* The mapping of the program itself, whose stack of the kind was the first; STACK_NONE: unknown.
 * pprof takes the first mapping of a profile for the program's. */
uint32_t stack_store__main(const struct stack_store *s, enum bpfprof_kind kind);

/* The path of the program that the process ran, as the kernel gives it, cut; "" if that is not known. */
void stack_store__exe(const struct stack_store *s, const struct stack_labels *l, char *ret,
		      size_t ret_sz);

/* The lower-case hex of the file's build id, "" if it has none or is not known. */
const char *stack_store__build_id(const struct stack_store *s, const struct stack_mapping *m);

/*
 * The same stack without its process, for stacks of a process that has ended, of which there may be
 * any number. Returns its number with a reference, or STACK_NONE.
 */
uint32_t stack_store__without_pid(struct stack_store *s, uint32_t stack);

#endif

// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "kernel/loads.h"

#include <bpf/libbpf.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/log.h"
#include "base/thread.h"
#include "base/util.h"
#include "bpfprof.h"

#define LOG_SZ (1U << 20)
#define STACK_SZ (256U << 10) /* a system call is all they do, and memory may be limited */

struct load {
	struct load *next;
	struct bpf_program *prog;
	enum bpf_prog_type type;
	struct bpf_prog_load_opts opts;
	struct bpf_insn *insns;
	size_t insn_cnt;
	pthread_t thread;
	int ret; /* a descriptor or -errno */
};

struct loads {
	struct load *first, **end;
};

/* What libbpf loads instead: any kind of program may return 0. */
static const struct bpf_insn stand_in[] = {
	{ .code = BPF_ALU64 | BPF_MOV | BPF_K, .dst_reg = BPF_REG_0 },
	{ .code = BPF_JMP | BPF_EXIT },
};

struct loads *loads__new(void)
{
	struct loads *l = calloc(1, sizeof(*l));

	if (l)
		l->end = &l->first;
	return l;
}

static int load(const struct load *p, const struct bpf_prog_load_opts *opts)
{
	int fd = bpf_prog_load(p->type, bpf_program__name(p->prog), BPFPROF_LICENSE, p->insns,
			       p->insn_cnt, opts);

	return fd < 0 ? -errno : fd;
}

static void *run(void *arg)
{
	struct load *p = arg;

	p->ret = load(p, &p->opts);
	return NULL;
}

static void free_load(struct load *p)
{
	if (!p)
		return;
	free(p->insns);
	free(p);
}

static struct load *new_load(struct bpf_program *prog, enum bpf_prog_type type,
			     const struct bpf_prog_load_opts *opts)
{
	size_t cnt = bpf_program__insn_cnt(prog);
	struct load *p = calloc(1, sizeof(*p));

	if (!p)
		return NULL;
	p->prog = prog;
	p->type = type;
	p->insn_cnt = cnt;
	p->insns = calloc(cnt, sizeof(*p->insns));
	if (!p->insns) {
		free_load(p);
		return NULL;
	}
	memcpy(p->insns, bpf_program__insns(prog), cnt * sizeof(*p->insns));
	/* those of a later libbpf may have more */
	p->opts.sz = MIN(opts->sz, sizeof(p->opts));
	memcpy((char *)&p->opts + sizeof(p->opts.sz), (const char *)opts + sizeof(opts->sz),
	       p->opts.sz - sizeof(p->opts.sz));
	return p;
}

int loads__begin(struct loads *l, struct bpf_program *prog, enum bpf_prog_type type,
		 struct bpf_prog_load_opts *opts)
{
	struct load *p = new_load(prog, type, opts);

	if (!p)
		return -ENOMEM;
	if (thread_start(&p->thread, STACK_SZ, run, p)) {
		free_load(p);
		return 0;
	}
	*l->end = p;
	l->end = &p->next;
	opts->func_info_cnt = opts->line_info_cnt = 0;
	return bpf_program__set_insns(prog, (struct bpf_insn *)stand_in, ARRAY_SIZE(stand_in));
}

/* Of a program that was refused: once more, since a log costs as much as the rest. */
static void say_why(struct load *p)
{
	char *line, *rest, *log = log_get_level() < LOG_DEBUG ? NULL : calloc(1, LOG_SZ);
	int fd;

	if (!log)
		return;
	p->opts.log_level = 1;
	p->opts.log_buf = log;
	p->opts.log_size = LOG_SZ;
	fd = load(p, &p->opts);
	if (fd >= 0)
		close(fd);
	log_debug("the kernel refuses the program %s: %s", bpf_program__name(p->prog),
		  strerror(-p->ret));
	for (line = strtok_r(log, "\n", &rest); line; line = strtok_r(NULL, "\n", &rest))
		log_debug("%s", line);
	free(log);
}

static int finish_one(struct load *p, bool keep)
{
	int err;

	(void)pthread_join(p->thread, NULL);
	err = MIN(p->ret, 0);
	if (err && keep)
		say_why(p);
	if (!err && keep && dup3(p->ret, bpf_program__fd(p->prog), O_CLOEXEC) < 0)
		err = -errno;
	if (p->ret >= 0)
		close(p->ret);
	free_load(p);
	return err;
}

int loads__finish(struct loads *l, bool keep)
{
	struct load *p, *next;
	int ret = 0, err;

	for (p = l->first; p; p = next) {
		next = p->next;
		err = finish_one(p, keep);
		ret = ret ? ret : err;
	}
	free(l);
	return ret;
}

/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Compares the unwind table of an object with what readelf says about the same call frame
 * information.
 *
 *     compare FILE...
 *
 * Each row of readelf's has to hold in our table at its first and at its last address, and where a
 * function ends before a gap there has to be no rule. Which of two overlapping functions counts is
 * decided here a second time. Expressions are only compared by class, since readelf does not show
 * what they are. .debug_frame of a program of Go says how far rsp has moved, and no more, and is not
 * true where a function sets rsp: it is compared with our rules that go by rsp, the others are
 * counted. Prints a line of counts for each file that is an object of ours; tests/tables/run adds
 * them up. Exit status 1 if anything differs.
 */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>
#include <linux/types.h>

#include "base/util.h"
#include "bpfprof.h"
#include "target/elf_file.h"
#include "target/gorows.h"
#include "target/unwind_build.h"
#include "tests/unit/truth.h"

#define MAX_COLUMNS 40
#define MAX_SHOWN 5

struct row {
	uint64_t loc;
	char cfa[16], rbx[16], rbp[16], ra[16];
};

/* A CIE or an FDE. */
struct entry {
	uint64_t start, end;
	uint64_t pos, cie; /* cie: index of an FDE's */
	bool is_cie, debug_frame, signal;
	size_t row, row_cnt;
};

static struct row *rows;
static size_t row_cnt, row_cap;
static struct entry *entries;
static size_t entry_cnt, entry_cap;
static struct entry **fdes; /* those that count, by address */
static size_t fde_cnt;

static bool go;	    /* what is in .debug_frame is Go's, and the table has rows of it */
static bool zdebug; /* it is called .zdebug_frame, which we do not read: Go up to 1.18 */

static uint64_t compared, expressions, differ, overlapped, gaps, unsupported, switches;

static void *grow(void *array, size_t *cap, size_t cnt, size_t sz)
{
	if (cnt < *cap)
		return array;
	*cap = *cap * 2 + 1024;
	array = reallocarray(array, *cap, sz);
	if (!array) {
		perror("compare");
		exit(2);
	}
	return array;
}

/* ---- Reading ---- */

/* OFFSET LENGTH ID "CIE" "AUGMENTATION" … or OFFSET LENGTH ID "FDE" cie=… pc=…..… */
static bool parse_entry(const char *line, bool debug_frame)
{
	struct entry e = { .debug_frame = debug_frame, .row = row_cnt };
	char augmentation[32] = "";
	size_t i;

	if (sscanf(line, "%" SCNx64 " %*x %*x FDE cie=%" SCNx64 " pc=%" SCNx64 "..%" SCNx64, &e.pos,
		   &e.cie, &e.start, &e.end) == 4) {
		for (i = entry_cnt; i-- > 0;) {
			if (entries[i].is_cie && entries[i].debug_frame == debug_frame &&
			    entries[i].pos == e.cie)
				break;
		}
		if (i >= entry_cnt)
			return false;
		e.cie = i;
		e.signal = entries[i].signal;
	} else if (strstr(line, " CIE ") &&
		   sscanf(line, "%" SCNx64 " %*x %*x CIE \"%31[^\"]", &e.pos, augmentation) >= 1) {
		e.is_cie = true;
		e.signal = strchr(augmentation, 'S') != NULL;
	} else {
		return false;
	}
	entries = grow(entries, &entry_cap, entry_cnt, sizeof(*entries));
	entries[entry_cnt++] = e;
	return true;
}

struct columns {
	int cnt, rbx, rbp, ra;
};

static void parse_columns(char *line, struct columns *c)
{
	char *save, *word;

	*c = (struct columns){ .rbx = -1, .rbp = -1, .ra = -1 };
	for (word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		if (!strcmp(word, "rbx"))
			c->rbx = c->cnt;
		if (!strcmp(word, "rbp"))
			c->rbp = c->cnt;
		if (!strcmp(word, "ra"))
			c->ra = c->cnt;
		c->cnt++;
	}
}

static void parse_row(char *line, const struct columns *c)
{
	struct row r = { .rbx = "s", .rbp = "s", .ra = "?" };
	char *save, *word;
	int i = 0;

	for (word = strtok_r(line, " \n", &save); word; word = strtok_r(NULL, " \n", &save)) {
		if (*word == '(') /* the name of the register before it */
			continue;
		if (i == 0)
			r.loc = strtoull(word, NULL, 16);
		else if (i == 1)
			snprintf(r.cfa, sizeof(r.cfa), "%s", word);
		else if (i == c->rbx)
			snprintf(r.rbx, sizeof(r.rbx), "%s", word);
		else if (i == c->rbp)
			snprintf(r.rbp, sizeof(r.rbp), "%s", word);
		else if (i == c->ra)
			snprintf(r.ra, sizeof(r.ra), "%s", word);
		i++;
	}
	/* several rows of one address: the last one is the state there */
	if (entries[entry_cnt - 1].row_cnt && rows[row_cnt - 1].loc == r.loc) {
		rows[row_cnt - 1] = r;
		return;
	}
	rows = grow(rows, &row_cap, row_cnt, sizeof(*rows));
	rows[row_cnt++] = r;
	entries[entry_cnt - 1].row_cnt++;
}

static void parse(FILE *in)
{
	struct columns columns = { 0 };
	bool debug_frame = false, in_rows = false;
	char *line = NULL;
	size_t cap = 0;

	while (getline(&line, &cap, in) > 0) {
		if (strstr(line, "section")) {
			debug_frame = strstr(line, "debug_frame") != NULL;
			zdebug |= strstr(line, ".zdebug_frame") != NULL;
			in_rows = false;
		} else if (!strncmp(line, "   LOC ", 7)) {
			parse_columns(line, &columns);
			in_rows = entry_cnt > 0;
		} else if (*line == '\n') {
			in_rows = false;
		} else if (in_rows) {
			parse_row(line, &columns);
		} else {
			parse_entry(line, debug_frame);
		}
	}
	free(line);
}

/* ---- Which functions count ---- */

static bool is_text(struct elf_file *elf, const struct entry *e)
{
	size_t cnt, i;
	const struct elf_segment *s = elf_file__segments(elf, &cnt);

	for (i = 0; i < cnt; i++) {
		if (s[i].exec && e->start >= s[i].vaddr && e->end <= s[i].vaddr + s[i].filesz)
			return true;
	}
	return false;
}

static int by_address(const void *a, const void *b)
{
	const struct entry *x = *(struct entry *const *)a, *y = *(struct entry *const *)b;

	if (x->start != y->start)
		return x->start < y->start ? -1 : 1;
	return x < y ? -1 : x > y;
}

static void pick_fdes(struct elf_file *elf)
{
	uint64_t eh_end = 0;
	size_t i, n = 0;

	fdes = calloc(entry_cnt + 1, sizeof(*fdes));
	for (i = 0; fdes && i < entry_cnt; i++) {
		struct entry *e = &entries[i];

		if (e->debug_frame && zdebug && !go)
			continue;
		if (!e->is_cie && e->start && e->end > e->start && is_text(elf, e))
			fdes[fde_cnt++] = e;
	}
	if (!fdes)
		exit(2);
	qsort(fdes, fde_cnt, sizeof(*fdes), by_address);
	for (i = 0; i < fde_cnt; i++) {
		struct entry *e = fdes[i];

		if ((n && fdes[n - 1]->start == e->start) ||
		    (e->debug_frame && e->start < eh_end)) {
			overlapped += e->debug_frame ? 0 : 1;
			continue;
		}
		if (!e->debug_frame)
			eh_end = e->end;
		fdes[n++] = e;
	}
	fde_cnt = n;
}

/* ---- Comparing ---- */

static bool same_cfa(const char *want, const struct bpfprof_rule *got)
{
	static const char *const names[] = {
		"rax", "rdx", "rcx", "rbx", "rsi", "rdi", "rbp", "rsp",
		"r8",  "r9",  "r10", "r11", "r12", "r13", "r14", "r15"
	};
	char reg[16];
	int off;

	if (!strcmp(want, "exp"))
		return got->cfa != BPFPROF_CFA_NONE && got->cfa != BPFPROF_CFA_SIGNAL;
	if (sscanf(want, "%15[^+-]%d", reg, &off) != 2 || off != got->cfa_off)
		return false;
	if (got->cfa == BPFPROF_CFA_SP)
		return !strcmp(reg, "rsp");
	if (got->cfa == BPFPROF_CFA_FP)
		return !strcmp(reg, "rbp");
	return got->cfa == BPFPROF_CFA_REG && got->reg < ARRAY_SIZE(names) &&
	       !strcmp(reg, names[got->reg]);
}

static bool same_rbp(const char *want, const struct bpfprof_rule *got)
{
	if (!strcmp(want, "s"))
		return got->fp == BPFPROF_FP_SAME;
	if (!strcmp(want, "u")) /* also what readelf shows as long as nothing is known */
		return got->fp == BPFPROF_FP_SAME || got->fp == BPFPROF_FP_UNDEF;
	if (!strcmp(want, "exp"))
		return got->fp == BPFPROF_FP_FP || got->fp == BPFPROF_FP_SP;
	if (*want == 'c')
		return got->fp == BPFPROF_FP_CFA && got->fp_off == atoi(want + 1);
	return *want == 'r' && got->fp == BPFPROF_FP_UNDEF;
}

static bool same_rbx(const char *want, const struct bpfprof_rule *got)
{
	if (!strcmp(want, "s"))
		return !got->bx_off;
	if (!strcmp(want, "u"))
		return !got->bx_off || got->bx_off == BPFPROF_BX_UNKNOWN;
	if (*want == 'c')
		/* a rule cannot say that it is at the CFA itself: there, 0 means that it is kept */
		return got->bx_off == (atoi(want + 1) ?: BPFPROF_BX_UNKNOWN);
	return got->bx_off == BPFPROF_BX_UNKNOWN;
}

static bool same_ra(const char *want, const struct bpfprof_rule *got)
{
	if (!strcmp(want, "c-8"))
		return got->ra == BPFPROF_RA_CFA;
	if (*want == 'c')
		return got->ra == BPFPROF_RA_OFF && got->aux == atoi(want + 1);
	return *want == 'r' && got->ra == BPFPROF_RA_REG && got->aux == atoi(want + 1);
}

static bool is_expression(const struct row *r)
{
	return !strcmp(r->cfa, "exp") || strstr(r->rbp, "exp") || strstr(r->ra, "exp");
}

static bool same(const struct entry *fde, const struct row *r, const struct bpfprof_rule *got)
{
	if (fde->signal)
		return got->cfa == BPFPROF_CFA_SIGNAL || got->cfa == BPFPROF_CFA_UNSUPPORTED;
	if (!strcmp(r->ra, "u"))
		return got->ra == BPFPROF_RA_END && got->cfa == BPFPROF_CFA_SP;
	if (got->cfa == BPFPROF_CFA_UNSUPPORTED)
		return is_expression(r) || *r->rbp == 'v' || *r->ra == 'v';
	return same_cfa(r->cfa, got) && same_rbp(r->rbp, got) && same_rbx(r->rbx, got) &&
	       same_ra(r->ra, got);
}

/*
 * A CIE whose initial instructions save rbp and restore it again: readelf shows it saved. There is
 * nothing to restore to but the register itself, as the runtimes read it.
 */
static bool restored_in_cie(const struct entry *fde, const struct row *r,
			    const struct bpfprof_rule *got)
{
	return !fde->row_cnt && *r->rbp == 'c' && same_cfa(r->cfa, got) &&
	       got->fp == BPFPROF_FP_SAME && same_ra(r->ra, got);
}

/* A function of Go that sets rsp has rules by rbp somewhere. */
static bool sets_rsp(const struct unwind_table *t, const struct entry *fde)
{
	struct bpfprof_rule rule = { 0 };

	for (size_t i = 0; i < fde->row_cnt && rule.cfa != BPFPROF_CFA_FP; i++)
		truth_lookup(t, rows[fde->row + i].loc, &rule);
	return rule.cfa == BPFPROF_CFA_FP;
}

/* The last byte of a function has what holds at its first, whatever stands there. */
static bool same_go(const struct unwind_table *t, const struct entry *fde, const struct row *r,
		    uint64_t addr, const struct bpfprof_rule *got)
{
	if (got->ra == BPFPROF_RA_END || got->cfa != BPFPROF_CFA_SP || sets_rsp(t, fde)) {
		switches++;
		return got->cfa != BPFPROF_CFA_NONE;
	}
	return same_cfa(r->cfa, got) || addr + 1 == fde->end;
}

static bool check(const struct unwind_table *t, const struct entry *fde, const struct row *r,
		  uint64_t addr)
{
	struct bpfprof_rule got;

	truth_lookup(t, addr, &got);
	if (go && fde->debug_frame && same_go(t, fde, r, addr, &got))
		return true;
	if (same(fde, r, &got) || restored_in_cie(fde, r, &got))
		return true;
	if (differ < MAX_SHOWN)
		printf("  %" PRIx64 " (FDE %" PRIx64
		       "): readelf %s rbx %s rbp %s ra %s, table cfa %u reg %u off %d "
		       "fp %u off %d rbx %d ra %u aux %d\n",
		       addr, fde->pos, r->cfa, r->rbx, r->rbp, r->ra, got.cfa, got.reg, got.cfa_off,
		       got.fp, got.fp_off, got.bx_off, got.ra, got.aux);
	return false;
}

static void compare_rows(const struct unwind_table *t, const struct entry *fde, uint64_t end)
{
	const struct entry *from = fde->row_cnt ? fde : &entries[fde->cie];
	size_t i;

	for (i = 0; i < from->row_cnt; i++) {
		const struct row *r = &rows[from->row + i];
		uint64_t loc = from == fde ? r->loc : fde->start, last = end;
		struct bpfprof_rule got;

		if (loc < fde->start || loc >= end)
			continue;
		if (i + 1 < from->row_cnt)
			last = MIN(end, r[1].loc);
		compared++;
		expressions += is_expression(r);
		if (!check(t, fde, r, loc) || !check(t, fde, r, last - 1))
			differ++;
		truth_lookup(t, loc, &got);
		unsupported += got.cfa == BPFPROF_CFA_UNSUPPORTED;
	}
}

/* What comes of code that was followed (target/flow.h) is compared by flow.c. The rule for what a
 * signal's handler returns to begins in front of that. */
static void drop_followed(struct bpfprof_rule *rule)
{
	if (rule->ra == BPFPROF_RA_CALL || rule->ra == BPFPROF_RA_END ||
	    rule->cfa == BPFPROF_CFA_SIGNAL)
		rule->cfa = BPFPROF_CFA_NONE;
}

static void compare_gap(const struct unwind_table *t, const struct entry *fde,
			const struct entry *next)
{
	uint64_t last = next ? next->start - 1 : fde->end;
	struct bpfprof_rule at_end, at_last;

	if (next && next->start <= fde->end)
		return;
	gaps++;
	truth_lookup(t, fde->end, &at_end);
	truth_lookup(t, last, &at_last);
	drop_followed(&at_end);
	drop_followed(&at_last);
	if (at_end.cfa != BPFPROF_CFA_NONE || at_last.cfa != BPFPROF_CFA_NONE) {
		differ++;
		printf("  rule in the gap after %" PRIx64 "\n", fde->end);
	}
}

static void compare(const struct unwind_table *t)
{
	size_t i;

	for (i = 0; i < fde_cnt; i++) {
		const struct entry *fde = fdes[i], *next = i + 1 < fde_cnt ? fdes[i + 1] : NULL;

		overlapped += next && next->start < fde->end;
		compare_rows(t, fde, next ? MIN(fde->end, next->start) : fde->end);
		compare_gap(t, fde, next);
	}
}

/* What readelf writes about the file; it must not follow links to debug files, which have tables of
 * their own. */
static FILE *start_readelf(const char *path, pid_t *ret_pid)
{
	int fds[2];

	if (pipe(fds))
		return NULL;
	*ret_pid = fork();
	if (!*ret_pid) {
		int null = open("/dev/null", O_WRONLY | O_CLOEXEC);

		dup2(fds[1], STDOUT_FILENO);
		dup2(null, STDERR_FILENO);
		close(fds[0]);
		close(fds[1]);
		execlp("readelf", "readelf", "--debug-dump=frames-interp,no-follow-links", "--",
		       path, (char *)NULL);
		_exit(127);
	}
	close(fds[1]);
	return *ret_pid < 0 ? NULL : fdopen(fds[0], "r");
}

static int compare_file(struct elf_file *elf, const char *path)
{
	struct unwind_table t = { 0 };
	struct gorows *rows_of_go;
	int err, status = 0;
	pid_t pid;
	FILE *in = start_readelf(path, &pid);

	if (!in) {
		perror("compare: readelf");
		return 2;
	}
	parse(in);
	fclose(in);
	waitpid(pid, &status, 0);
	if (!WIFEXITED(status) || WEXITSTATUS(status) == 127) {
		fprintf(stderr, "compare: cannot run readelf\n");
		return 2;
	}
	rows_of_go = gorows__open(elf);
	go = rows_of_go;
	gorows__free(rows_of_go);
	pick_fdes(elf);
	err = unwind_build(elf, &t);
	if (err && (err != -ENOENT || fde_cnt)) {
		printf("  no table: %s\n", strerror(-err));
		differ++;
	}
	compare(&t);
	printf("%" PRIu64 " rows %" PRIu64 " differ %" PRIu64 " expressions %" PRIu64
	       " unsupported %" PRIu64 " overlaps %" PRIu64 " gaps %" PRIu64 " switches %s\n",
	       compared, differ, expressions, unsupported, overlapped, gaps, switches, path);
	unwind_table__done(&t);
	return differ ? 1 : 0;
}

int main(int argc, char **argv)
{
	int i, fd, status, result = 0;
	struct elf_file *elf;

	for (i = 1; i < argc; i++) {
		fd = open(argv[i], O_RDONLY | O_CLOEXEC | O_NONBLOCK);
		elf = fd < 0 ? NULL : elf_file__open(fd);
		/* a process each: a crash is a difference too, and memory is given back */
		if (elf) {
			fflush(stdout);
			if (!fork()) {
				status = compare_file(elf, argv[i]);
				fflush(stdout);
				_exit(status);
			}
			wait(&status);
			if (!WIFEXITED(status) || WEXITSTATUS(status) > 1)
				printf("0 rows 1 differ 0 expressions 0 unsupported 0 overlaps 0 "
				       "gaps %s (died)\n",
				       argv[i]);
			if (status)
				result = 1;
			elf_file__free(elf);
		}
		if (fd >= 0)
			close(fd);
	}
	return result;
}

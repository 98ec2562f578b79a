// SPDX-License-Identifier: BSD-2-Clause
/* Process contexts: where they are, whole or changed while they are read, right and wrong in each field,
 * of processes that publish one. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <sys/wait.h>

#include "base/util.h"
#include "context_made.h"
#include "target/process_context.h"
#include "toolrun.h"

static uint8_t payload[PROCESS_CONTEXT_MAX];
static struct context_bytes message;

/* ---- where it is ---- */

#define LINE(start, rights, rest) #start "000-" #start "001 " rights " 00000000 00:00 0 " rest "\n"
#define MEMFD(start, rights, rest) \
#start "000-" #start "001 " rights " 00000000 00:01 77 " rest "\n"

static const struct {
	const char *maps;
	int cnt;
	uint64_t places[PROCESS_CONTEXT_PLACES];
} maps[] = {
	{ "", 0, { 0 } },
	{ LINE(10, "rw-p", "[heap]") MEMFD(20, "rw-p", "/memfd:OTEL_CTX (deleted)"),
	  1,
	  { 0x20000 } },
	{ MEMFD(20, "rw-p", "/memfd:OTEL_CTX"), 1, { 0x20000 } },
	{ LINE(20, "rw-p", "[anon:OTEL_CTX]") LINE(30, "rw-p", ""), 1, { 0x20000 } },
	{ MEMFD(20, "r--p", "[anon_shmem:OTEL_CTX]"), 1, { 0x20000 } },
	/* another name, or one of code */
	{ LINE(20, "rw-p", "[anon:OTEL_CTX2]") LINE(30, "rw-p", "[anon:OTEL_CT]"), 0, { 0 } },
	{ MEMFD(20, "rw-p", "/memfd:OTEL_CTX2 (deleted)") MEMFD(30, "rw-p", "/x/memfd:OTEL_CTX"),
	  0,
	  { 0 } },
	{ MEMFD(20, "rwxp", "/memfd:OTEL_CTX (deleted)"), 0, { 0 } },
	/* there should be one */
	{ MEMFD(20, "rw-p", "/memfd:OTEL_CTX") LINE(30, "rw-p", "[anon:OTEL_CTX]")
		  LINE(40, "rw-p", "[anon:OTEL_CTX]") LINE(50, "rw-p", "[anon:OTEL_CTX]")
			  LINE(60, "rw-p", "[anon:OTEL_CTX]"),
	  4,
	  { 0x20000, 0x30000, 0x40000, 0x50000 } },
};

/* A process of a /proc of our own. */
static FILE *make_maps(void)
{
	char path[256];

	snprintf(path, sizeof(path), "%s/7", toolrun_folder());
	assert_true(!mkdir(path, 0700) || errno == EEXIST);
	strcat(path, "/maps");
	return fopen(path, "w");
}

static void find(void **state)
{
	uint64_t places[PROCESS_CONTEXT_PLACES];
	size_t sz, written;
	FILE *f;

	(void)state;
	assert_int_equal(process_context_find(toolrun_folder(), 8, places, &sz), -ESRCH);
	for (size_t i = 0; i < ARRAY_SIZE(maps); i++) {
		f = make_maps();
		fputs(maps[i].maps, f);
		fclose(f);
		assert_int_equal(process_context_find(toolrun_folder(), 7, places, &sz),
				 maps[i].cnt);
		assert_memory_equal(places, maps[i].places, maps[i].cnt * sizeof(*places));
	}
	/* behind more than is read: MiB in front of it */
	for (int mib = 1; mib <= 3; mib += 2) {
		f = make_maps();
		for (int i = 0; i < mib << 10; i++)
			fprintf(f, "10000-10001 rw-p 00000000 00:00 0 /%01000d\n", i);
		fputs(LINE(20, "rw-p", "[anon:OTEL_CTX]"), f);
		written = (size_t)ftell(f);
		fclose(f);
		assert_int_equal(process_context_find(toolrun_folder(), 7, places, &sz), mib == 1);
		/* whoever asks is to know what that took */
		assert_int_equal(sz, mib == 1 ? written : 2U << 20);
	}
	/* what is not looked at was read, too */
	f = make_maps();
	fprintf(f, "10000-10001 rw-p 00000000 00:00 0 /%0*d\n", 2 << 20, 0);
	fclose(f);
	assert_int_equal(process_context_find(toolrun_folder(), 7, places, &sz), 0);
	assert_int_equal(sz, 2U << 20);
}

/* ---- memory that changes while it is read ---- */

#define HEADER 0x1000
#define PAYLOAD 0x8000

static struct {
	struct context_header header;
	uint8_t payload[4096];
	int reads;
	void (*before)(int nr); /* changes it, before the read of this number, from 1 on */
	uint64_t unreadable;	/* address */
	int err;
} memory;

static int read_memory(void *ctx, uint64_t addr, void *buf, size_t sz)
{
	assert_ptr_equal(ctx, &memory);
	memory.reads++;
	if (memory.before)
		memory.before(memory.reads);
	if (addr == memory.unreadable)
		return memory.err;
	if (addr == HEADER && sz == sizeof(memory.header))
		memcpy(buf, &memory.header, sz);
	else if (addr == PAYLOAD && sz <= sizeof(memory.payload))
		memcpy(buf, memory.payload, sz);
	else
		return -EIO;
	return 0;
}

static void make_memory(void)
{
	memset(&memory, 0, sizeof(memory));
	memory.header = (struct context_header){ "OTEL_CTX", 2, 100, 5, PAYLOAD };
	memset(memory.payload, 'a', sizeof(memory.payload));
}

/* What comes of it, in how many reads. */
static void need_read(int err, int reads)
{
	size_t sz = 0;

	assert_int_equal(process_context_read(read_memory, &memory, HEADER, payload, &sz), err);
	assert_int_equal(memory.reads, reads);
	if (!err) {
		assert_int_equal(sz, memory.header.payload_sz);
		assert_memory_equal(payload, memory.payload, sz);
	}
}

static void wrong_headers(void **state)
{
	(void)state;
	make_memory();
	need_read(0, 3);
	make_memory();
	memory.header.signature[7] = 'Y';
	need_read(-EBADMSG, 1);
	for (uint32_t version = 0; version < 5; version++) {
		make_memory();
		memory.header.version = version;
		need_read(version == 2 ? 0 : -EBADMSG, version == 2 ? 3 : 1);
	}
	/* being changed */
	make_memory();
	memory.header.published_ns = 0;
	need_read(-EAGAIN, 3);
	/* sizes, of which the payload is not read */
	for (int i = 0; i < 3; i++) {
		make_memory();
		memory.header.payload_sz =
			(uint32_t[]){ 0, PROCESS_CONTEXT_MAX + 1, UINT32_MAX }[i];
		need_read(-EBADMSG, 2);
	}
	/* what lies beyond what there is */
	make_memory();
	memory.header.payload_sz = PROCESS_CONTEXT_MAX;
	need_read(-EIO, 3);
	make_memory();
	memory.header.payload = UINT64_MAX;
	need_read(-EIO, 3);
	make_memory();
	memory.unreadable = HEADER;
	memory.err = -ETIMEDOUT;
	need_read(-ETIMEDOUT, 1);
	make_memory();
	memory.unreadable = PAYLOAD;
	memory.err = -ETIMEDOUT;
	need_read(-ETIMEDOUT, 3);
}

/* A new payload between the reads of one try, once. */
static void change_once(int nr)
{
	if (nr != 2)
		return;
	memory.header.published_ns = 6;
	memory.header.payload_sz = 50;
	memset(memory.payload, 'b', sizeof(memory.payload));
}

/* The time alone: it has to be another one. */
static void tick_always(int nr)
{
	memory.header.published_ns += nr % 3 == 0;
}

/* A change begins while the payload is read, and has ended by the next try. */
static void change_slowly(int nr)
{
	if (nr == 2)
		memset(memory.payload, 'b', sizeof(memory.payload));
	memory.header.published_ns = nr == 3 ? 0 : nr > 3 ? 6 : 5;
}

/* The payload of before is gone, since there is another one. */
static void move(int nr)
{
	memory.unreadable = nr == 2 ? PAYLOAD : 0;
	memory.err = -EIO;
	memory.header.published_ns = nr >= 2 ? 6 : 5;
}

static void changing(void **state)
{
	(void)state;
	make_memory();
	memory.before = change_once;
	need_read(0, 6);
	make_memory();
	memory.before = tick_always;
	need_read(-EAGAIN, 9);
	make_memory();
	memory.before = change_slowly;
	need_read(0, 6);
	make_memory();
	memory.before = move;
	need_read(0, 6);
}

/* ---- messages ---- */

/* behind its end there is nothing that may be read */
static int parse(const void *data, size_t sz, struct said *ret)
{
	void *copy = malloc(sz + !sz);
	int err;

	memcpy(copy, data, sz);
	err = process_context_parse(copy, sz, ret);
	free(copy);
	assert_true(said__is_clean(ret));
	return err;
}

static void need_said(const char *const said[SAID_FACTS])
{
	struct said s;

	assert_int_equal(parse(message.data, message.sz, &s), 0);
	for (size_t i = 0; i < SAID_FACTS; i++)
		assert_string_equal(s.text[i], said[i] ? said[i] : "");
}

static void make_message(const char *const pairs[][2])
{
	static struct context_bytes resource;

	resource.sz = message.sz = 0;
	for (size_t i = 0; pairs[i][0]; i++)
		context_attribute(&resource, pairs[i][0], pairs[i][1]);
	context_field(&message, 1, resource.data, resource.sz);
}

static void says(void **state)
{
	(void)state;
	make_message((const char *const[][2]){ { "service.version", "1" },
					       { "service.name", " shop " },
					       { "service.instance.id", "x" },
					       { "deployment.environment.name", "prod" },
					       { "service.namespace", "team" },
					       { "service.name", "later" },
					       { NULL } });
	need_said((const char *const[SAID_FACTS]){ "shop", "team", "1", "prod" });
	/* nothing without a name */
	make_message((const char *const[][2]){ { "service.version", "1" }, { NULL } });
	need_said((const char *const[SAID_FACTS]){ 0 });
	make_message((const char *const[][2]){
		{ "service.name", "unknown_service:sh" }, { "service.version", "1" }, { NULL } });
	need_said((const char *const[SAID_FACTS]){ 0 });
	make_message((const char *const[][2]){ { "service.name",
						 "a\xff\x1b"
						 "b" },
					       { NULL } });
	need_said(
		(const char *const[SAID_FACTS]){ "a\xef\xbf\xbd\xef\xbf\xbd"
						 "b" });
	/* attributes that are not the resource's */
	context_message(&message, "a");
	message.data[0] = 2 << 3 | 2;
	need_said((const char *const[SAID_FACTS]){ 0 });
	/* and nothing at all */
	message.sz = 0;
	need_said((const char *const[SAID_FACTS]){ 0 });
}

/* Values that are no text, and fields that nobody knows. */
static void other_values(void **state)
{
	static struct context_bytes resource, attribute;
	static const uint8_t number[] = { 3 << 3, 42 };

	(void)state;
	resource.sz = attribute.sz = message.sz = 0;
	context_field(&attribute, 1, "service.name", 12);
	context_field(&attribute, 2, number, sizeof(number));
	context_field(&attribute, 9, "service.name", 12);
	context_field(&resource, 1, attribute.data, attribute.sz);
	/* a key alone */
	attribute.sz = 0;
	context_field(&attribute, 1, "service.name", 12);
	context_field(&resource, 1, attribute.data, attribute.sz);
	context_attribute(&resource, "service.name", "shop");
	context_field(&resource, 200, "?", 1);
	context_field(&message, 1, resource.data, resource.sz);
	need_said((const char *const[SAID_FACTS]){ "shop" });
}

/* As deep as there is room for: lists of lists (AnyValue 5, ArrayValue 1) are not taken apart. */
static void deep(void **state)
{
	static struct context_bytes inner, outer, attribute, resource;
	int depth = 0;

	(void)state;
	inner.sz = 0;
	while (inner.sz < 60000) {
		outer.sz = 0;
		context_field(&outer, depth++ % 2 ? 5 : 1, inner.data, inner.sz);
		inner = outer;
	}
	attribute.sz = resource.sz = message.sz = 0;
	context_field(&attribute, 1, "x", 1);
	context_field(&attribute, 2, inner.data, inner.sz);
	context_field(&resource, 1, attribute.data, attribute.sz);
	context_attribute(&resource, "service.name", "shop");
	context_field(&message, 1, resource.data, resource.sz);
	assert_true(depth > 10000 && message.sz <= PROCESS_CONTEXT_MAX);
	need_said((const char *const[SAID_FACTS]){ "shop" });
}

/* As many as there is room for, and as long. */
static void much(void **state)
{
	static struct context_bytes resource;
	static char text[60000];
	struct said s;

	(void)state;
	resource.sz = message.sz = 0;
	while (resource.sz < 65000)
		context_field(&resource, 1, "", 0);
	context_attribute(&resource, "service.name", "shop");
	context_field(&message, 1, resource.data, resource.sz);
	assert_true(message.sz <= PROCESS_CONTEXT_MAX);
	need_said((const char *const[SAID_FACTS]){ "shop" });
	memset(text, 'n', sizeof(text) - 1);
	context_message(&message, text);
	assert_int_equal(parse(message.data, message.sz, &s), 0);
	assert_int_equal(strlen(s.text[SAID_SERVICE]), SAID_TEXT_SZ - 1);
}

/* Cut anywhere, or with any byte another one: an error, or something clean. */
static void damaged(void **state)
{
	struct said s;

	(void)state;
	context_message(&message, "shop");
	for (size_t sz = 1; sz < message.sz; sz++)
		assert_int_equal(parse(message.data, sz, &s), -EBADMSG);
	for (size_t i = 0; i < message.sz; i++) {
		uint8_t was = message.data[i];

		for (int byte = 0; byte < 256; byte++) {
			message.data[i] = (uint8_t)byte;
			(void)parse(message.data, message.sz, &s);
		}
		message.data[i] = was;
	}
	memset(message.data, 0xff, 1000);
	assert_int_equal(parse(message.data, 1000, &s), -EBADMSG);
}

/* ---- processes ---- */

struct publisher {
	pid_t pid;
	bool named;
	int mem_fd;
};

/* A child that has published a context by how(), and does go() until it is stopped. */
static struct publisher start(bool memfd, void (*how)(struct context_header *h),
			      void (*go)(struct context_header *h))
{
	struct publisher ret;
	int pipe_fds[2];
	char path[64];

	assert_int_equal(pipe(pipe_fds), 0);
	ret.pid = fork();
	assert_true(ret.pid >= 0);
	if (!ret.pid) {
		struct context_header *h = context_map(memfd, &ret.named);

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		if (!h)
			_exit(1);
		how(h);
		(void)!write(pipe_fds[1], &ret.named, sizeof(ret.named));
		for (;;)
			go(h);
	}
	assert_int_equal(read(pipe_fds[0], &ret.named, sizeof(ret.named)), sizeof(ret.named));
	close(pipe_fds[0]);
	close(pipe_fds[1]);
	snprintf(path, sizeof(path), "/proc/%d/mem", ret.pid);
	ret.mem_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(ret.mem_fd >= 0);
	return ret;
}

static void stop(struct publisher *p)
{
	int status;

	assert_int_equal(kill(p->pid, SIGKILL), 0);
	assert_int_equal(waitpid(p->pid, &status, 0), p->pid);
	/* it was there until now */
	assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
	close(p->mem_fd);
}

static int read_process(void *ctx, uint64_t addr, void *buf, size_t sz)
{
	return util_pread_full(((struct publisher *)ctx)->mem_fd, buf, sz, addr);
}

/* The context that is found: 0, and what it says; -ENOENT: none is found; -errno. */
static int ask(struct publisher *p, struct said *ret)
{
	uint64_t places[PROCESS_CONTEXT_PLACES];
	size_t sz;
	int cnt = process_context_find("/proc", (uint32_t)p->pid, places, &sz), err;

	if (cnt <= 0)
		return cnt ? cnt : -ENOENT;
	assert_int_equal(cnt, 1);
	err = process_context_read(read_process, p, places[0], payload, &sz);
	return err ? err : parse(payload, sz, ret);
}

static void rest(struct context_header *h)
{
	(void)h;
	pause();
}

static void publish(struct context_header *h)
{
	context_message(&message, "shop");
	context_publish(h, message.data, message.sz, 5);
}

static void published(void **state)
{
	struct said s;

	(void)state;
	for (int memfd = 0; memfd < 2; memfd++) {
		struct publisher p = start(memfd, publish, rest);
		/* what has no other name is found by the one that prctl gives it */
		int found = memfd || p.named ? 0 : -ENOENT;

		assert_int_equal(ask(&p, &s), found);
		if (!found)
			assert_string_equal(s.text[SAID_SERVICE], "shop");
		stop(&p);
		assert_int_equal(ask(&p, &s), -ESRCH);
	}
}

/* A child has none of its parent's. */
static void publish_in_parent(struct context_header *h)
{
	publish(h);
	if (!fork()) {
		prctl(PR_SET_PDEATHSIG, SIGKILL);
		for (;;)
			pause();
	}
}

static void forked(void **state)
{
	struct publisher p = start(true, publish_in_parent, rest), child = { .mem_fd = -1 };
	char path[64], *text;
	struct said s;
	size_t sz;

	(void)state;
	snprintf(path, sizeof(path), "/proc/%d/task/%d/children", p.pid, p.pid);
	assert_int_equal(util_read_file(path, 4096, &text, &sz), 0);
	child.pid = atoi(text);
	free(text);
	assert_true(child.pid > 0);
	assert_int_equal(ask(&p, &s), 0);
	assert_int_equal(ask(&child, &s), -ENOENT);
	assert_int_equal(kill(child.pid, SIGKILL), 0);
	stop(&p);
}

static void publish_wrong_signature(struct context_header *h)
{
	publish(h);
	h->signature[0] = 'o';
}

static void publish_version_1(struct context_header *h)
{
	publish(h);
	h->version = 1;
}

static void publish_version_3(struct context_header *h)
{
	publish(h);
	h->version = 3;
}

static void publish_no_payload(struct context_header *h)
{
	publish(h);
	h->payload_sz = 0;
}

static void publish_too_much(struct context_header *h)
{
	publish(h);
	h->payload_sz = PROCESS_CONTEXT_MAX + 1;
}

static void publish_unfinished(struct context_header *h)
{
	publish(h);
	h->published_ns = 0;
}

static void publish_nowhere(struct context_header *h)
{
	publish(h);
	h->payload = 16;
}

static void publish_kernels(struct context_header *h)
{
	publish(h);
	h->payload = 0xffffffff81000000;
}

/* Up to the end of what is mapped, and beyond. */
static void publish_beyond(struct context_header *h)
{
	char *two = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	publish(h);
	munmap(two + 4096, 4096);
	h->payload = (uintptr_t)two + 4096 - 100;
	h->payload_sz = 101;
}

static void publish_cut(struct context_header *h)
{
	publish(h);
	h->payload_sz--;
}

static void publish_noise(struct context_header *h)
{
	memset(message.data, 0xff, 4096);
	context_publish(h, message.data, 4096, 5);
}

static void publish_nothing(struct context_header *h)
{
	(void)h;
}

static void wrong(void **state)
{
	static const struct {
		void (*how)(struct context_header *h);
		int err;
	} ways[] = {
		{ publish, 0 },
		{ publish_wrong_signature, -EBADMSG },
		{ publish_version_1, -EBADMSG },
		{ publish_version_3, -EBADMSG },
		{ publish_no_payload, -EBADMSG },
		{ publish_too_much, -EBADMSG },
		{ publish_unfinished, -EAGAIN },
		{ publish_nothing, -EBADMSG },
		{ publish_nowhere, -EIO },
		{ publish_beyond, -EIO },
		{ publish_kernels, -EINVAL },
		{ publish_cut, -EBADMSG },
		{ publish_noise, -EBADMSG },
	};

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(ways); i++) {
		struct publisher p = start(true, ways[i].how, rest);
		struct said s;

		assert_int_equal(ask(&p, &s), ways[i].err);
		stop(&p);
	}
}

/* Publishes one after the other, by the protocol; the payloads take turns in two places. */
static void republish(struct context_header *h)
{
	static struct context_bytes at[2];
	static uint64_t n = 5;
	char name[32];

	snprintf(name, sizeof(name), "shop-%" PRIu64 "-%" PRIu64, n, n);
	context_message(&at[n % 2], name);
	context_publish(h, at[n % 2].data, at[n % 2].sz, n);
	/* time enough, now and then, to read one */
	if (++n % 16 == 0)
		usleep(300);
}

/* What is read is one of them, and whole. */
static void changed(void **state)
{
	struct publisher p = start(true, publish, republish);
	size_t whole = 0;

	(void)state;
	for (int i = 0; i < 100000 && whole < 300; i++) {
		uint64_t a, b;
		struct said s;
		int err = ask(&p, &s);

		assert_true(!err || err == -EAGAIN);
		if (err || !strcmp(s.text[SAID_SERVICE], "shop"))
			continue;
		assert_int_equal(sscanf(s.text[SAID_SERVICE], "shop-%" SCNu64 "-%" SCNu64, &a, &b),
				 2);
		assert_int_equal(a, b);
		whole++;
	}
	assert_int_equal(whole, 300);
	stop(&p);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(find),		cmocka_unit_test(wrong_headers),
		cmocka_unit_test(changing),	cmocka_unit_test(says),
		cmocka_unit_test(other_values), cmocka_unit_test(deep),
		cmocka_unit_test(much),		cmocka_unit_test(damaged),
		cmocka_unit_test(published),	cmocka_unit_test(forked),
		cmocka_unit_test(wrong),	cmocka_unit_test(changed),
	};
	int failed = cmocka_run_group_tests(tests, NULL, NULL);

	toolrun_cleanup();
	return failed;
}

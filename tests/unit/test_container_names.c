// SPDX-License-Identifier: BSD-2-Clause
/* Names of containers by the files of their runtimes, in trees that are made here as the runtimes make
 * them; and what else can be in such a place. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <libgen.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/util.h"
#include "target/container_file.h"
#include "target/container_names.h"
#include "target/objects.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define OTHER "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID "12345678-90ab-cdef-1234-567890abcdef"
#define UID2 "abcdef12-90ab-cdef-1234-567890abcdef"
#define STATIC "1234567890abcdef1234567890abcdef"

#define DOCKER "/var/lib/docker/containers/"
#define TASKS "/io.containerd.runtime.v2.task/"
#define CONTAINERD "/run/containerd" TASKS
#define CRIO "/run/containers/storage/overlay-containers/"
#define STORAGE "/var/lib/containers/storage/overlay-containers/"

/* What the runtimes write, less what has nothing to do with names. */
#define DOCKERS(name, labels)                                                         \
	"{\"StreamConfig\":{},\"State\":{\"Running\":true,\"Pid\":4711},\"ID\":\"" ID \
	"\",\"Created\":\"2026-11-26T15:04:05.123456789Z\",\"Path\":\"/bin/sh\","     \
	"\"Config\":{\"Hostname\":\"0123456789ab\",\"Env\":[\"PASSWORD=x\"],"         \
	"\"Labels\":{" labels "}},\"Image\":\"sha256:00\",\"Name\":\"" name "\"}"
#define OCI(annotations)                                                               \
	"{\"ociVersion\":\"1.1.0\",\"process\":{\"env\":[\"PASSWORD=x\"],\"rlimits\":" \
	"[{\"type\":\"RLIMIT_CORE\",\"hard\":18446744073709551615}]},"                 \
	"\"annotations\":{" annotations "},\"linux\":{}}"
#define CRI(uid, name)                                                    \
	OCI("\"io.kubernetes.cri.container-type\":\"container\","         \
	    "\"io.kubernetes.cri.sandbox-uid\":\"" uid                    \
	    "\","                                                         \
	    "\"io.kubernetes.cri.sandbox-name\":\"web-7d4b9c6f5-x2k8p\"," \
	    "\"io.kubernetes.cri.sandbox-namespace\":\"shop\","           \
	    "\"io.kubernetes.cri.container-name\":\"" name "\"")
#define KUBERNETES(uid, name)                           \
	"\"io.kubernetes.pod.uid\":\"" uid              \
	"\",\"io.kubernetes.pod.namespace\":"           \
	"\"shop\",\"io.kubernetes.pod.name\":\"db-0\"," \
	"\"io.kubernetes.container.name\":\"" name "\""
#define LIST                                             \
	"[{\"id\":\"" OTHER                              \
	"\",\"names\":[\"cache\"],\"metadata\":\"{}\"}," \
	"{\"id\":\"" ID "\",\"names\":[\"web\",\"second\"],\"image\":\"00\"}]"

static char root[] = "/tmp/bpfprof-containers-XXXXXX";
static struct objects *objects;

static void __attribute__((format(printf, 1, 2))) run(const char *form, ...)
{
	char command[1200];
	va_list args;

	va_start(args, form);
	vsnprintf(command, sizeof(command), form, args);
	va_end(args);
	assert_int_equal(system(command), 0);
}

static void path_of(const char *name, char *ret, size_t sz)
{
	snprintf(ret, sz, "%s%s", root, name);
}

static void make_bytes(const char *name, const char *data, size_t sz)
{
	char path[512], copy[512];
	int fd;

	path_of(name, path, sizeof(path));
	snprintf(copy, sizeof(copy), "%s", name);
	run("mkdir -p '%s%s'", root, dirname(copy));
	fd = open(path, O_WRONLY | O_CREAT | O_TRUNC, 0600);
	assert_true(fd >= 0);
	assert_int_equal(write(fd, data, sz), sz);
	close(fd);
}

static void make(const char *name, const char *text)
{
	make_bytes(name, text, strlen(text));
}

static void clear(void)
{
	run("rm -rf '%s'/*", root);
}

struct want {
	const char *container, *pod, *space;
};

static void check(const char *what, const char *uid, const char *id, const struct want *want)
{
	const char *container = want->container ? want->container : "";
	const char *pod = want->pod ? want->pod : "", *space = want->space ? want->space : "";
	struct pod_names got = { 0 };

	assert_int_equal(container_names__find(root, objects, uid, id, &got), 0);
	if (strcmp(got.container ? got.container : "", container) ||
	    strcmp(got.pod ? got.pod : "", pod) || strcmp(got.space ? got.space : "", space))
		fail_msg("%s: container '%s', pod '%s', namespace '%s'", what,
			 got.container ? got.container : "", got.pod ? got.pod : "",
			 got.space ? got.space : "");
	pod_names__done(&got);
}

static const struct {
	const char *path, *text;
	const char *uid;
	struct want want;
} files[] = {
	/* docker */
	{ DOCKER ID "/config.v2.json", DOCKERS("/web", ""), "", { "web", NULL, NULL } },
	{ DOCKER ID "/config.v2.json",
	  DOCKERS("/shop-web-1", "\"com.docker.compose.service\":\"web\""),
	  "",
	  { "shop-web-1", NULL, NULL } },
	/* cri-dockerd */
	{ DOCKER ID "/config.v2.json",
	  DOCKERS("/k8s_db_db-0_shop_" UID "_0", KUBERNETES(UID, "db")),
	  UID,
	  { "db", "db-0", "shop" } },
	{ DOCKER ID "/config.v2.json",
	  DOCKERS("/k8s_POD_db-0", KUBERNETES(UID, "POD")),
	  UID,
	  { NULL, "db-0", "shop" } },
	/* containerd: kubelet's, the same of k3s, k0s, microk8s; nerdctl's, in any namespace; ctr's */
	{ CONTAINERD "k8s.io/" ID "/config.json",
	  CRI(UID, "nginx"),
	  UID,
	  { "nginx", "web-7d4b9c6f5-x2k8p", "shop" } },
	{ CONTAINERD "k8s.io/" ID "/config.json",
	  CRI(STATIC, "nginx"),
	  STATIC,
	  { "nginx", "web-7d4b9c6f5-x2k8p", "shop" } },
	{ "/run/k3s/containerd" TASKS "k8s.io/" ID "/config.json",
	  CRI(UID, "nginx"),
	  UID,
	  { "nginx", "web-7d4b9c6f5-x2k8p", "shop" } },
	{ "/run/k0s/containerd" TASKS "k8s.io/" ID "/config.json",
	  CRI(UID, "nginx"),
	  UID,
	  { "nginx", "web-7d4b9c6f5-x2k8p", "shop" } },
	{ "/var/snap/microk8s/common/run/containerd" TASKS "k8s.io/" ID "/config.json",
	  CRI(UID, "nginx"),
	  UID,
	  { "nginx", "web-7d4b9c6f5-x2k8p", "shop" } },
	/* before 1.6 */
	{ CONTAINERD "k8s.io/" ID "/config.json",
	  OCI("\"io.kubernetes.cri.sandbox-name\":\"web-0\","
	      "\"io.kubernetes.cri.sandbox-namespace\":\"shop\","
	      "\"io.kubernetes.cri.container-name\":\"nginx\""),
	  UID,
	  { "nginx", "web-0", "shop" } },
	/* the pod's own container */
	{ CONTAINERD "k8s.io/" ID "/config.json",
	  OCI("\"io.kubernetes.cri.container-type\":\"sandbox\","
	      "\"io.kubernetes.cri.sandbox-uid\":\"" UID "\","
	      "\"io.kubernetes.cri.sandbox-name\":\"web-0\","
	      "\"io.kubernetes.cri.sandbox-namespace\":\"shop\""),
	  UID,
	  { NULL, "web-0", "shop" } },
	{ CONTAINERD "default/" ID "/config.json",
	  OCI("\"nerdctl/name\":\"web\""),
	  "",
	  { "web", NULL, NULL } },
	{ CONTAINERD "staging/" ID "/config.json",
	  OCI("\"nerdctl/name\":\"shop-web-1\",\"com.docker.compose.service\":\"web\""),
	  "",
	  { "shop-web-1", NULL, NULL } },
	{ CONTAINERD "default/" ID "/config.json", OCI(""), "", { 0 } },
	/* CRI-O, in either of its folders */
	{ CRIO ID "/userdata/config.json",
	  OCI(KUBERNETES(UID, "db")),
	  UID,
	  { "db", "db-0", "shop" } },
	{ STORAGE ID "/userdata/config.json",
	  OCI(KUBERNETES(UID, "db")),
	  UID,
	  { "db", "db-0", "shop" } },
	{ CRIO ID "/userdata/config.json",
	  OCI(KUBERNETES(UID, "POD")),
	  UID,
	  { NULL, "db-0", "shop" } },
	/* podman: what stays, and what --rm removes */
	{ STORAGE "containers.json", LIST, "", { "web", NULL, NULL } },
	{ STORAGE "volatile-containers.json", LIST, "", { "web", NULL, NULL } },

	/* of another pod; what a container's maker claims where there is none */
	{ CONTAINERD "k8s.io/" ID "/config.json", CRI(UID2, "nginx"), UID, { 0 } },
	{ CONTAINERD "k8s.io/" ID "/config.json", CRI(UID, "nginx"), "", { 0 } },
	{ DOCKER ID "/config.v2.json",
	  DOCKERS("/web", KUBERNETES(UID, "db")),
	  "",
	  { "web", NULL, NULL } },
	{ CRIO ID "/userdata/config.json", OCI(KUBERNETES(UID, "db")), "", { 0 } },
	{ CRIO ID "/userdata/config.json", OCI("\"nerdctl/name\":\"web\""), "", { 0 } },
	{ CONTAINERD "moby/" ID "/config.json", OCI("\"nerdctl/name\":\"web\""), "", { 0 } },
	/* in the folder of another container, or of a shorter id */
	{ DOCKER OTHER "/config.v2.json", DOCKERS("/web", ""), "", { 0 } },
	{ DOCKER "0123456789ab/config.v2.json", DOCKERS("/web", ""), "", { 0 } },
	{ DOCKER ID "0/config.v2.json", DOCKERS("/web", ""), "", { 0 } },
	{ CONTAINERD "k8s.io/" OTHER "/config.json", CRI(UID, "nginx"), UID, { 0 } },
	{ STORAGE "containers.json", "[{\"id\":\"" ID "0\",\"names\":[\"web\"]}]", "", { 0 } },
	{ STORAGE "containers.json", "[{\"id\":\"0123456789ab\",\"names\":[\"web\"]}]", "", { 0 } },
	{ DOCKER ID "/config.v2.json", "{\"ID\":\"" ID "0\",\"Name\":\"/web\"}", "", { 0 } },
	{ DOCKER ID "/config.v2.json", "{\"Name\":\"/web\"}", "", { 0 } },
	/* no names */
	{ DOCKER ID "/config.v2.json", DOCKERS("web", ""), "", { 0 } },
	{ DOCKER ID "/config.v2.json", DOCKERS("/", ""), "", { 0 } },
	{ DOCKER ID "/config.v2.json", DOCKERS("/web/db", ""), "", { 0 } },
	{ DOCKER ID "/config.v2.json", DOCKERS("/a\\u001b[1mb", ""), "", { 0 } },
	{ DOCKER ID "/config.v2.json", DOCKERS("/a\\nb", ""), "", { 0 } },
	{ DOCKER ID "/config.v2.json", DOCKERS("/a\\u0000b", ""), "", { 0 } },
	{ DOCKER ID "/config.v2.json", DOCKERS("/a\\u202eb", ""), "", { 0 } },
	{ DOCKER ID "/config.v2.json", DOCKERS("/..", ""), "", { 0 } },
	{ CONTAINERD "k8s.io/" ID "/config.json",
	  CRI(UID, "../nginx"),
	  UID,
	  { NULL, "web-7d4b9c6f5-x2k8p", "shop" } },
	{ CONTAINERD "k8s.io/" ID "/config.json",
	  CRI(UID, "a b\\t"),
	  UID,
	  { NULL, "web-7d4b9c6f5-x2k8p", "shop" } },
	/* other types */
	{ DOCKER ID "/config.v2.json",
	  "{\"ID\":\"" ID "\",\"Name\":[\"/web\"],\"Config\":7}",
	  "",
	  { 0 } },
	{ DOCKER ID "/config.v2.json",
	  "{\"ID\":\"" ID "\",\"Name\":\"/web\",\"Config\":{\"Labels\":[]}}",
	  "",
	  { "web", NULL, NULL } },
	{ DOCKER ID "/config.v2.json", "[{\"ID\":\"" ID "\",\"Name\":\"/web\"}]", "", { 0 } },
	{ DOCKER ID "/config.v2.json", "\"" ID "\"", "", { 0 } },
	{ DOCKER ID "/config.v2.json", "null", "", { 0 } },
	{ CONTAINERD "k8s.io/" ID "/config.json", "{\"annotations\":[{}]}", UID, { 0 } },
	{ CONTAINERD "k8s.io/" ID "/config.json",
	  "{\"annotations\":{\"io.kubernetes.cri.sandbox-name\":{}}}",
	  UID,
	  { 0 } },
	{ STORAGE "containers.json", "{\"id\":\"" ID "\",\"names\":[\"web\"]}", "", { 0 } },
	{ STORAGE "containers.json",
	  "[1,[],{\"id\":3},{\"id\":\"" ID "\",\"names\":\"web\"}]",
	  "",
	  { 0 } },
	{ STORAGE "containers.json",
	  "[1,[],{\"id\":3},{\"id\":\"" ID "\",\"names\":[\"web\"]}]",
	  "",
	  { "web", NULL, NULL } },
	{ STORAGE "containers.json", "[{\"id\":\"" ID "\",\"names\":[]}]", "", { 0 } },
	/* no JSON, or not all of it */
	{ DOCKER ID "/config.v2.json", "", "", { 0 } },
	{ DOCKER ID "/config.v2.json", "{\"ID\":\"" ID "\",\"Name\":\"/web\"", "", { 0 } },
	{ DOCKER ID "/config.v2.json", "{\"ID\":\"" ID "\",\"Name\":\"/web\"}x", "", { 0 } },
	{ DOCKER ID "/config.v2.json", "{\"ID\":\"" ID "\",\"Name\":\"/web\xff\"}", "", { 0 } },
};

static void test_files(void **state)
{
	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(files); i++) {
		char what[64];

		snprintf(what, sizeof(what), "file %zu", i);
		make(files[i].path, files[i].text);
		check(what, files[i].uid, ID, &files[i].want);
		clear();
		check(what, files[i].uid, ID, &(struct want){ 0 });
	}
}

/* What is known stays, and only what lacks is added; of several files the first one counts. */
static void test_together(void **state)
{
	struct pod_names got = { .pod = strdup("known") };

	(void)state;
	make(CONTAINERD "k8s.io/" ID "/config.json", CRI(UID, "nginx"));
	assert_int_equal(container_names__find(root, objects, UID, ID, &got), 0);
	assert_string_equal(got.pod, "known");
	assert_string_equal(got.space, "shop");
	assert_string_equal(got.container, "nginx");
	pod_names__done(&got);
	make(STORAGE "containers.json", LIST);
	check("podman", "", ID, &(struct want){ "web", NULL, NULL });
	check("podman", "", OTHER, &(struct want){ "cache", NULL, NULL });
	make(DOCKER ID "/config.v2.json", DOCKERS("/first", ""));
	check("docker", "", ID, &(struct want){ "first", NULL, NULL });
	/* the service of Compose, in no pod */
	clear();
	for (int in_pod = 0; in_pod < 2; in_pod++) {
		make(DOCKER ID "/config.v2.json",
		     DOCKERS("/shop-web-1", "\"com.docker.compose.service\":\"web\""));
		assert_int_equal(container_names__find(root, objects, in_pod ? UID : "", ID, &got),
				 0);
		if (in_pod)
			assert_null(got.service);
		else
			assert_string_equal(got.service, "web");
		pod_names__done(&got);
	}
	/* more namespaces than are looked at */
	clear();
	for (int i = 0; i < 100; i++) {
		char name[64];

		snprintf(name, sizeof(name), CONTAINERD "n%d/x", i);
		make(name, "");
	}
	check("namespaces", "", ID, &(struct want){ 0 });
	clear();
}

/* Names that are no ids, and that would lead elsewhere. */
static void test_ids(void **state)
{
	static const char *const ids[] = { "",
					   "web",
					   "..",
					   "../" ID,
					   "user@1000.service/" ID,
					   "0123456789a",
					   "0123456789ab/../" ID,
					   "-0123456789abcdef" };

	(void)state;
	make(DOCKER ID "/config.v2.json", DOCKERS("/web", ""));
	make("/var/lib/docker/config.v2.json", DOCKERS("/web", ""));
	make(DOCKER "web/config.v2.json", DOCKERS("/web", ""));
	for (size_t i = 0; i < ARRAY_SIZE(ids); i++)
		check(ids[i], "", ids[i], &(struct want){ 0 });
	clear();
}

/* ---- what is no such file ---- */

static void test_links(void **state)
{
	char path[512];

	(void)state;
	make("/elsewhere/" ID "/config.v2.json", DOCKERS("/web", ""));
	/* the file, the container's folder */
	run("mkdir -p '%s%s'", root, DOCKER ID);
	run("ln -s '%s/elsewhere/" ID "/config.v2.json' '%s" DOCKER ID "/config.v2.json'", root,
	    root);
	path_of(DOCKER ID "/config.v2.json", path, sizeof(path));
	assert_int_equal(access(path, R_OK), 0);
	check("link", "", ID, &(struct want){ 0 });
	clear();
	make("/elsewhere/" ID "/config.v2.json", DOCKERS("/web", ""));
	run("mkdir -p '%s%s'", root, DOCKER);
	run("ln -s '%s/elsewhere/" ID "' '%s" DOCKER ID "'", root, root);
	assert_int_equal(access(path, R_OK), 0);
	check("link to a folder", "", ID, &(struct want){ 0 });
	clear();
	/* the administrator's, to another disk */
	make("/disk/containers/" ID "/config.v2.json", DOCKERS("/web", ""));
	run("mkdir -p '%s%s'", root, "/var/lib");
	run("ln -s ../../disk '%s%s'", root, "/var/lib/docker");
	check("link to a disk", "", ID, &(struct want){ "web", NULL, NULL });
	clear();
}

static void test_kinds(void **state)
{
	static const char file[] = DOCKER ID "/config.v2.json";
	char path[512];

	(void)state;
	path_of(file, path, sizeof(path));
	run("mkdir -p '%s%s'", root, DOCKER ID);
	assert_int_equal(mkfifo(path, 0600), 0);
	check("fifo", "", ID, &(struct want){ 0 });
	assert_int_equal(unlink(path), 0);
	assert_int_equal(mkdir(path, 0700), 0);
	check("folder", "", ID, &(struct want){ 0 });
	assert_int_equal(rmdir(path), 0);
	/* what others may write, or have written */
	make(file, DOCKERS("/web", ""));
	assert_int_equal(chmod(path, 0620), 0);
	check("group", "", ID, &(struct want){ 0 });
	assert_int_equal(chmod(path, 0602), 0);
	check("all", "", ID, &(struct want){ 0 });
	assert_int_equal(chmod(path, 0600), 0);
	check("own", "", ID, &(struct want){ "web", NULL, NULL });
	if (!geteuid()) {
		assert_int_equal(chown(path, 65534, 65534), 0);
		check("nobody's", "", ID, &(struct want){ 0 });
	}
	clear();
}

/* Sizes, and what is deeper than any reader may go. */
static void test_sizes(void **state)
{
	static const char file[] = DOCKER ID "/config.v2.json", head[] = DOCKERS("/web", "");
	size_t sz = 10U << 20;
	char *data = malloc(sz);

	(void)state;
	assert_non_null(data);
	memset(data, ' ', sz);
	memcpy(data, head, sizeof(head) - 1);
	make_bytes(file, data, sz);
	check("10 MiB", "", ID, &(struct want){ 0 });
	make_bytes(file, data, CONTAINER_FILE_MAX + 1);
	check("a byte too many", "", ID, &(struct want){ 0 });
	make_bytes(file, data, CONTAINER_FILE_MAX);
	check("just so", "", ID, &(struct want){ "web", NULL, NULL });
	/* [[[[ */
	memset(data, '[', CONTAINER_FILE_MAX);
	make_bytes(file, data, CONTAINER_FILE_MAX);
	check("deep", "", ID, &(struct want){ 0 });
	memset(data + CONTAINER_FILE_MAX / 2, ']', CONTAINER_FILE_MAX / 2);
	make_bytes(file, data, CONTAINER_FILE_MAX);
	check("deep and back", "", ID, &(struct want){ 0 });
	/* as many values as there is room for */
	for (size_t i = 0; i < CONTAINER_FILE_MAX; i++)
		data[i] = "[],"[i % 3];
	data[0] = '[';
	make_bytes(file, data, CONTAINER_FILE_MAX);
	check("many", "", ID, &(struct want){ 0 });
	make(file, head);
	check("after them", "", ID, &(struct want){ "web", NULL, NULL });
	/* the longest name there is, and one more */
	for (int more = 0; more < 2; more++) {
		struct want want = { 0 };
		int len = CONTAINER_NAME_SZ - 1 + more, n;
		char name[CONTAINER_NAME_SZ + 1];

		memset(name, 'n', sizeof(name));
		name[len] = '\0';
		n = snprintf(data, sz, "{\"ID\":\"" ID "\",\"Name\":\"/%s\"}", name);
		make_bytes(file, data, (size_t)n);
		want.container = more ? NULL : name;
		check("long", "", ID, &want);
	}
	free(data);
	clear();
}

/* ---- the text by itself ---- */

static void test_parse(void **state)
{
	static const char text[] = DOCKERS("/shop-web-1",
					   "\"com.docker.compose.service\":\"web\","
					   "\"com.docker.compose.project\":\"shop\"");
	static const char swarm[] = DOCKERS("/shop_web.1.x2k8p",
					    "\"com.docker.compose.service\":\"other\","
					    "\"com.docker.swarm.service.name\":\"shop_web\"");
	struct container_said s;

	(void)state;
	assert_int_equal(
		container_file_parse(CONTAINER_FILE_DOCKER, text, sizeof(text) - 1, ID, &s), 0);
	assert_string_equal(s.text[CONTAINER_NAME], "shop-web-1");
	assert_string_equal(s.text[CONTAINER_SERVICE], "web");
	assert_true(container_said__is_clean(&s));
	assert_int_equal(
		container_file_parse(CONTAINER_FILE_DOCKER, swarm, sizeof(swarm) - 1, ID, &s), 0);
	assert_string_equal(s.text[CONTAINER_SERVICE], "shop_web");
	assert_int_equal(
		container_file_parse(CONTAINER_FILE_DOCKER, text, sizeof(text) - 1, OTHER, &s),
		-ENOENT);
	assert_string_equal(s.text[CONTAINER_NAME], "");
	assert_int_equal(
		container_file_parse(CONTAINER_FILE_DOCKER, text, sizeof(text) - 2, ID, &s),
		-EBADMSG);
	/* what a reader that was taken over may say */
	for (int i = 0; i < CONTAINER_FACTS; i++) {
		static const char *const bad[] = { ".", "a/b", "a\n", "\xff", "a b", "_" };

		for (size_t k = 0; k < ARRAY_SIZE(bad); k++) {
			memset(&s, 0, sizeof(s));
			strcpy(s.text[i], bad[k]);
			assert_false(container_said__is_clean(&s));
		}
		memset(&s, 0, sizeof(s));
		s.text[i][CONTAINER_NAME_SZ - 1] = 'a';
		assert_false(container_said__is_clean(&s));
		memset(s.text[i], 'a', CONTAINER_NAME_SZ);
		assert_false(container_said__is_clean(&s));
		s.text[i][CONTAINER_NAME_SZ - 1] = '\0';
		assert_true(container_said__is_clean(&s));
		s.text[i][0] = 'A';
		assert_int_equal(container_said__is_clean(&s), i < CONTAINER_POD_UID);
	}
}

static int setup(void **state)
{
	(void)state;
	objects = objects__new();
	return objects && mkdtemp(root) ? 0 : 1;
}

static int teardown(void **state)
{
	struct objects_stats stats;

	(void)state;
	/* nothing has killed a reader */
	objects__stats(objects, &stats);
	if (stats.readers_died || stats.readers_lied)
		return 1;
	objects__free(objects);
	return rmdir(root);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_files), cmocka_unit_test(test_together),
		cmocka_unit_test(test_ids),   cmocka_unit_test(test_links),
		cmocka_unit_test(test_kinds), cmocka_unit_test(test_sizes),
		cmocka_unit_test(test_parse),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}

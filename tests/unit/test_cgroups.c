// SPDX-License-Identifier: BSD-2-Clause
/* What the paths of control groups say, by the forms that kubelet, the runtimes and systemd give them;
 * and groups of this machine, by their ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/magic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/util.h"
#include "target/cgroup_path.h"
#include "target/cgroups.h"
#include "target/container_names.h"

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID_ "12345678_90ab_cdef_1234_567890abcdef"
#define UID "12345678-90ab-cdef-1234-567890abcdef"
#define MANAGER "/user.slice/user-1000.slice/user@1000.service"
#define STATIC "1234567890abcdef1234567890abcdef"

static const struct {
	const char *path;
	const char *container, *pod, *unit;
} paths[] = {
	/* kubelet with systemd's driver */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",
	  ID, UID, "" },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/crio-" ID
	  ".scope",
	  ID, UID, "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/docker-" ID ".scope", ID, UID, "" },
	{ "/kubepods.slice/kubepods-pod" STATIC ".slice/cri-containerd-" ID ".scope", ID, STATIC,
	  "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope/container", ID, UID, "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" ID ".scope", "", UID, "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice", "", UID, "" },
	/* with its own */
	{ "/kubepods/burstable/pod" UID "/" ID, ID, UID, "" },
	{ "/kubepods/besteffort/pod" UID "/" ID, ID, UID, "" },
	{ "/kubepods/pod" UID "/crio-" ID, ID, UID, "" },
	{ "/kubepods/pod" STATIC "/" ID "/init", ID, STATIC, "" },
	/* what has made groups of its own below the container's */
	{ "/kubepods/burstable/pod" UID "/" ID "/kube-proxy", ID, UID, "" },
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
	  ".slice/cri-containerd-" ID ".scope/kube-proxy",
	  ID, UID, "" },
	{ "/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
	  ".slice/cri-containerd-" ID ".scope/kube-proxy",
	  ID, UID, "" },
	/* containerd 1.x below systemd */
	{ "/system.slice/containerd.service/kubepods-burstable-pod" UID_
	  ".slice:cri-containerd:" ID,
	  ID, UID, "containerd.service" },
	/* in a container of its own: kind, minikube */
	{ "/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	  "kubelet-kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope",
	  ID, UID, "" },
	{ "/system.slice/docker-" ID2
	  ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",
	  ID, UID, "" },
	/* docker, podman, containerd alone */
	{ "/docker/" ID, ID, "", "" },
	{ "/docker/" ID "/init", ID, "", "" },
	{ "/docker/buildkit/xq3k2m1", "xq3k2m1", "", "" },
	{ "/system.slice/docker-" ID ".scope", ID, "", "" },
	{ "/system.slice/nerdctl-" ID ".scope", ID, "", "" },
	{ "/default/" ID, ID, "", "" },
	{ "/machine.slice/libpod-" ID ".scope", ID, "", "" },
	{ "/machine.slice/libpod-" ID ".scope/container", ID, "", "" },
	{ "/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope", ID, "", "" },
	{ "/machine.slice/libpod-conmon-" ID ".scope", "", "", "" },
	{ MANAGER "/user.slice/libpod-" ID ".scope", "user@1000.service/" ID, "",
	  "user@1000.service" },
	{ "/system.slice/web.service/libpod-payload-" ID, ID, "", "web.service" },
	/* LXC, systemd-nspawn, others */
	{ "/lxc/web", "web", "", "" },
	{ "/lxc.payload.web", "web", "", "" },
	{ "/lxc.payload.web/system.slice/ssh.service", "web", "", "" },
	{ "/lxc.monitor.web", "", "", "" },
	{ "/machine.slice/machine-debian\\x2d12.scope", "debian-12", "", "" },
	{ "/machine.slice/systemd-nspawn@web.service", "web", "", "" },
	{ "/ecs/" STATIC "/" STATIC "-1234567890", STATIC "-1234567890", "", "" },
	{ "/garden/" UID, UID, "", "" },
	/* systemd */
	{ "/system.slice/ssh.service", "", "", "ssh.service" },
	{ "/system.slice/system-postgresql.slice/postgresql@9.4-main.service", "", "",
	  "postgresql@9.4-main.service" },
	{ "/system.slice/dev-disk\\x2dby\\x2duuid.service", "", "", "dev-disk-by-uuid.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service", "", "",
	  "user@1000.service/editor.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/init.scope", "", "",
	  "user@1000.service/init.scope" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/a.service/b.scope", "", "",
	  "user@1000.service/b.scope" },
	{ "/user.slice/user-1000.slice/session-2.scope", "", "", "session-2.scope" },
	{ "/user.slice/user-1000.slice/session-3.scope", "", "", "session-3.scope" },
	{ "/system.slice/ssh.service/sub", "", "", "ssh.service" },
	{ "/system.slice/docker-" ID ".scope (deleted)", ID, "", "" },
	/* what a user calls as somebody else's */
	{ MANAGER "/kubepods.slice/kubepods-pod" UID_ ".slice/cri-containerd-" ID ".scope",
	  "user@1000.service/" ID, "", "user@1000.service" },
	{ MANAGER "/a.service/kubepods-pod" UID_ ".slice:cri-containerd:" ID,
	  "user@1000.service/" ID, "", "user@1000.service/a.service" },
	{ MANAGER "/a.service/kubepods/burstable/pod" UID "/" ID, "", "",
	  "user@1000.service/a.service" },
	{ MANAGER "/a.service/docker/" ID, "user@1000.service/" ID, "",
	  "user@1000.service/a.service" },
	{ MANAGER "/user@0.service/lxc.payload.web", "user@1000.service/web", "",
	  "user@1000.service/user@0.service" },
	{ "/lxc/web" MANAGER "/docker-" ID ".scope", "user@1000.service/" ID, "", "" },
	/* none of these */
	{ "", "", "", "" },
	{ "/", "", "", "" },
	{ "/podruntime/kubelet", "", "", "" },
	{ "/docker/readme", "", "", "" },
	{ "/kubepods/burstable", "", "", "" },
	{ "/kubepods.slice/kubepods-pod" UID_ "0.slice", "", "", "" },
	{ "/pod" UID "/" ID, "", "", "" },
	{ "/a.slice:cri-containerd:", "", "", "" },
	{ "/a::" ID, ID, "", "" },
	{ "//x//\\x", "", "", "" },
	{ "/\\x2.service", "", "", "\\x2.service" },
};

static void test_paths(void **state)
{
	struct cgroup_path got;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		cgroup_path__parse(paths[i].path, &got);
		if (strcmp(got.container, paths[i].container) || strcmp(got.pod, paths[i].pod) ||
		    strcmp(got.unit, paths[i].unit))
			fail_msg("%s: container '%s', pod '%s', unit '%s'", paths[i].path,
				 got.container, got.pod, got.unit);
	}
}

/* Names that nobody has a field for, and bytes of any kind. */
static void test_hostile(void **state)
{
	static char path[8192];
	struct cgroup_path got;

	(void)state;
	for (size_t len = 0; len < sizeof(path) - 64; len += 61) {
		snprintf(path, sizeof(path), "/system.slice/%0*d.service", (int)len, 0);
		cgroup_path__parse(path, &got);
		assert_int_equal(strlen(got.unit) + 1 <= sizeof(got.unit), 1);
		snprintf(path, sizeof(path), "/docker/%0*d", (int)len, 0);
		cgroup_path__parse(path, &got);
		assert_true(strlen(got.container) < sizeof(got.container));
	}
	for (unsigned int seed = 1; seed < 20000; seed++) {
		static const char *const parts[] = { "/",      "kubepods", "-pod",	UID_,
						     ".slice", ":",	   ID,		"\\x",
						     "crio-",  ".scope",   "docker",	"lxc.",
						     "\n",     "\xff",	   " (deleted)" };
		size_t n = 0;

		for (int i = 0; i < 8; i++)
			n += (size_t)snprintf(
				path + n, sizeof(path) - n, "%s",
				parts[(unsigned int)rand_r(&seed) % ARRAY_SIZE(parts)]);
		cgroup_path__parse(path, &got);
		assert_true(memchr(got.pod, '\0', sizeof(got.pod)) != NULL);
		assert_true(memchr(got.unit, '\0', sizeof(got.unit)) != NULL);
	}
}

/* ---- this machine's ---- */

static const char *mount_point(void)
{
	static const char *const at[] = { "/sys/fs/cgroup", "/sys/fs/cgroup/unified" };
	struct statfs fs;

	for (size_t i = 0; i < ARRAY_SIZE(at); i++)
		if (!statfs(at[i], &fs) && fs.f_type == CGROUP2_SUPER_MAGIC)
			return at[i];
	return NULL;
}

/* A group's id is the number of its folder's inode: Documentation/admin-guide/cgroup-v2.rst does not
 * say so, kernfs_id_ino in include/linux/kernfs.h does, on machines of 64 bits. */
static uint64_t id_of(const char *path)
{
	struct stat st;

	assert_int_equal(stat(path, &st), 0);
	return st.st_ino;
}

static void test_of_this_machine(void **state)
{
	const char *at = mount_point();
	struct cgroup *g, *same;
	struct cgroups *c;
	char path[256], name[128];
	uint64_t id;

	(void)state;
	snprintf(name, sizeof(name), "/bpfprof-test-%d.service", getpid());
	snprintf(path, sizeof(path), "%s%s", at ? at : "", name);
	if (!at || mkdir(path, 0755)) {
		print_message("no group can be made here: %s\n", strerror(errno));
		skip();
	}
	c = cgroups__new(NULL);
	assert_non_null(c);
	id = id_of(path);
	g = cgroups__find(c, id);
	assert_non_null(g);
	assert_string_equal(g->path, name);
	assert_string_equal(g->what.unit, name + 1);
	same = cgroups__find(c, id);
	assert_ptr_equal(g, same);
	/* the root's says nothing */
	assert_null(cgroups__find(c, id_of(at)));
	assert_null(cgroups__find(c, 0x123456789abcdef));
	/* it is known for as long as somebody refers to it, and also when it is gone */
	assert_int_equal(rmdir(path), 0);
	cgroup__unref(same);
	same = cgroups__find(c, id);
	assert_ptr_equal(g, same);
	/* others that are met do not take its place */
	for (uint64_t i = 1; i < 2 * CGROUPS_MAX; i++)
		assert_null(cgroups__find(c, i << 40));
	assert_string_equal(g->path, name);
	same = cgroups__find(c, id);
	assert_ptr_equal(g, same);
	for (int i = 0; i < 3; i++)
		cgroup__unref(g);
	cgroups__free(c);
}

static const char *every_group; /* is this one; NULL: they are what they are */

int __real_open_by_handle_at(int mount_fd, struct file_handle *handle, int flags);
int __wrap_open_by_handle_at(int mount_fd, struct file_handle *handle, int flags);
int __wrap_open_by_handle_at(int mount_fd, struct file_handle *handle, int flags)
{
	return every_group ? open(every_group, flags) :
			     __real_open_by_handle_at(mount_fd, handle, flags);
}

/* More than there is room for, all of which are referred to. */
static void test_too_many(void **state)
{
	const char *at = mount_point();
	struct cgroup *first = NULL, *g;
	struct cgroups *c;
	char path[256];

	(void)state;
	snprintf(path, sizeof(path), "%s/bpfprof-test-%d.service", at ? at : "", getpid());
	if (!at || mkdir(path, 0755)) {
		print_message("no group can be made here: %s\n", strerror(errno));
		skip();
	}
	c = cgroups__new(NULL);
	assert_non_null(c);
	every_group = path;
	for (uint64_t id = 1; id <= CGROUPS_MAX; id++) {
		g = cgroups__find(c, id);
		assert_non_null(g);
		first = first ? first : g;
	}
	assert_null(cgroups__find(c, CGROUPS_MAX + 1));
	/* of those that are known nothing has changed, and one that goes makes room */
	assert_ptr_equal(cgroups__find(c, 1), first);
	for (int i = 0; i < 2; i++)
		cgroup__unref(first);
	for (int i = 0; i < 3000 && !cgroups__find(c, CGROUPS_MAX + 1); i++) {
		assert_ptr_not_equal(cgroups__find(c, 2), NULL);
		usleep(10000);
	}
	assert_non_null(cgroups__find(c, CGROUPS_MAX + 1));
	every_group = NULL;
	assert_int_equal(rmdir(path), 0);
	cgroups__free(c);
}

/* ---- names ---- */

/* What is looked for, and when. */
static struct {
	uint64_t ns;
	int folders, files;    /* looks */
	const char *container; /* what the files have by then; NULL: nothing */
	const char *pod;       /* what kubelet's folders have */
	int err;
} names;

uint64_t __real_util_monotonic_ns(void);
uint64_t __wrap_util_monotonic_ns(void);
uint64_t __wrap_util_monotonic_ns(void)
{
	return names.ns ? names.ns : __real_util_monotonic_ns();
}

void __wrap_pod_names__find(const char *logs, const char *uid, const char *container,
			    struct pod_names *ret);
void __wrap_pod_names__find(const char *logs, const char *uid, const char *container,
			    struct pod_names *ret)
{
	assert_string_equal(logs, "/var/log");
	assert_string_equal(uid, UID);
	(void)container;
	names.folders++;
	if (names.pod && !ret->pod)
		ret->pod = strdup(names.pod);
}

int __wrap_container_names__find(const char *root, struct objects *objects, const char *uid,
				 const char *id, struct pod_names *ret);
int __wrap_container_names__find(const char *root, struct objects *objects, const char *uid,
				 const char *id, struct pod_names *ret)
{
	assert_string_equal(root, "");
	assert_non_null(objects);
	assert_string_equal(id, ID);
	(void)uid;
	names.files++;
	if (names.container)
		ret->container = strdup(names.container);
	return names.err;
}

/* A group as cgroups__find would make it. */
static struct cgroup *group_of(struct cgroups *c, const char *path)
{
	struct cgroup *g = calloc(1, sizeof(*g));

	assert_non_null(g);
	g->of = c;
	cgroup_path__parse(path, &g->what);
	return g;
}

static void free_group_of(struct cgroup *g)
{
	pod_names__done(&g->names);
	free(g);
}

/* Looks ten times a second for so long. */
static void look_for(struct cgroup *g, uint64_t s)
{
	for (uint64_t i = 0; i < 10 * s; i++) {
		cgroup__find_names(g);
		names.ns += NSEC_PER_SEC / 10;
	}
}

/* The runtime writes its file later than the first sample may come; most that have none never will. */
static void test_names_in_time(void **state)
{
	/* nothing of it is called */
	struct objects *objects = (struct objects *)&names;
	struct cgroups *c = cgroups__new(objects);
	struct cgroup *g = group_of(c, "/system.slice/docker-" ID ".scope");

	(void)state;
	names.ns = NSEC_PER_SEC;
	cgroup__find_names(g);
	assert_int_equal(names.files, 1);
	look_for(g, 1);
	assert_int_equal(names.files, 1);
	look_for(g, 1);
	assert_int_equal(names.files, 2);
	assert_true(cgroup__awaits_names(g));
	look_for(g, 9);
	assert_int_equal(names.files, 3);
	look_for(g, 1000);
	assert_int_equal(names.files, 4);
	assert_false(cgroup__awaits_names(g));
	assert_int_equal(names.folders, 0);
	free_group_of(g);
	/* there at the second time: nothing is looked for again */
	names.files = 0;
	g = group_of(c, "/docker/" ID);
	cgroup__find_names(g);
	names.container = "web";
	look_for(g, 100);
	assert_int_equal(names.files, 2);
	assert_string_equal(g->names.container, "web");
	assert_false(cgroup__awaits_names(g));
	free_group_of(g);
	/* what is in no container */
	g = group_of(c, "/system.slice/ssh.service");
	look_for(g, 100);
	assert_int_equal(names.files, 2);
	assert_false(cgroup__awaits_names(g));
	free_group_of(g);
	cgroups__free(c);
	memset(&names, 0, sizeof(names));
}

/* A pod: kubelet's folders first, as long as it takes; its container may never have a name. */
static void test_pods_in_time(void **state)
{
	struct objects *objects = (struct objects *)&names;
	struct cgroups *c = cgroups__new(objects);
	struct cgroup *g = group_of(c, "/kubepods/burstable/pod" UID "/" ID);

	(void)state;
	names.ns = NSEC_PER_SEC;
	look_for(g, 200);
	assert_in_range(names.folders, 199, 201);
	assert_int_equal(names.files, 4);
	assert_true(cgroup__awaits_names(g));
	names.pod = "web-0";
	look_for(g, 200);
	assert_in_range(names.folders, 200, 202);
	assert_string_equal(g->names.pod, "web-0");
	assert_false(cgroup__awaits_names(g));
	free_group_of(g);
	/* the pod by the folders, its container by a file */
	names.files = 0;
	names.container = "nginx";
	g = group_of(c, "/kubepods/burstable/pod" UID "/" ID);
	look_for(g, 100);
	assert_int_equal(names.files, 1);
	assert_string_equal(g->names.container, "nginx");
	free_group_of(g);
	cgroups__free(c);
	memset(&names, 0, sizeof(names));
}

/* A file that does not answer is no reason to wait for each container; and without a reader none is read. */
static void test_files_that_harm(void **state)
{
	struct objects *objects = (struct objects *)&names;
	struct cgroups *c = cgroups__new(objects);
	struct cgroup *g[3];

	(void)state;
	names.ns = NSEC_PER_SEC;
	names.err = -ETIMEDOUT;
	for (int i = 0; i < 3; i++) {
		g[i] = group_of(c, "/docker/" ID);
		look_for(g[i], 10);
	}
	assert_int_equal(names.files, 1);
	names.err = 0;
	names.container = "web";
	look_for(g[2], 60);
	assert_int_equal(names.files, 2);
	assert_string_equal(g[2]->names.container, "web");
	for (int i = 0; i < 3; i++)
		free_group_of(g[i]);
	cgroups__free(c);
	c = cgroups__new(NULL);
	g[0] = group_of(c, "/docker/" ID);
	look_for(g[0], 100);
	assert_int_equal(names.files, 2);
	free_group_of(g[0]);
	cgroups__free(c);
	memset(&names, 0, sizeof(names));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_of_this_machine), cmocka_unit_test(test_too_many),
		cmocka_unit_test(test_names_in_time),	cmocka_unit_test(test_pods_in_time),
		cmocka_unit_test(test_files_that_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

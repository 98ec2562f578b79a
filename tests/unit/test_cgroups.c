// SPDX-License-Identifier: BSD-2-Clause
/* What the paths of control groups say, by the forms that kubelet, the runtimes and systemd give them;
 * and groups of this machine, by their ids. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
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

#define ID "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef"
#define ID2 "fedcba9876543210fedcba9876543210fedcba9876543210fedcba9876543210"
#define UID_ "12345678_90ab_cdef_1234_567890abcdef"
#define UID "12345678-90ab-cdef-1234-567890abcdef"
#define STATIC "1234567890abcdef1234567890abcdef"

static const struct {
	const char *path;
	enum cgroup_runtime runtime;
	const char *container, *pod, *unit;
} paths[] = {
	/* kubelet with systemd's driver */
	{ "/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",
	  CGROUP_CONTAINERD, ID, UID, "" },
	{ "/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" UID_ ".slice/crio-" ID
	  ".scope",
	  CGROUP_CRIO, ID, UID, "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/docker-" ID ".scope", CGROUP_DOCKER, ID, UID,
	  "" },
	{ "/kubepods.slice/kubepods-pod" STATIC ".slice/cri-containerd-" ID ".scope",
	  CGROUP_CONTAINERD, ID, STATIC, "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-" ID ".scope/container", CGROUP_CRIO, ID,
	  UID, "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice/crio-conmon-" ID ".scope",
	  CGROUP_NO_CONTAINER, "", UID, "" },
	{ "/kubepods.slice/kubepods-pod" UID_ ".slice", CGROUP_NO_CONTAINER, "", UID, "" },
	/* with its own */
	{ "/kubepods/burstable/pod" UID "/" ID, CGROUP_KUBELET, ID, UID, "" },
	{ "/kubepods/besteffort/pod" UID "/" ID, CGROUP_KUBELET, ID, UID, "" },
	{ "/kubepods/pod" UID "/crio-" ID, CGROUP_CRIO, ID, UID, "" },
	{ "/kubepods/pod" STATIC "/" ID "/init", CGROUP_KUBELET, ID, STATIC, "" },
	/* containerd 1.x below systemd */
	{ "/system.slice/containerd.service/kubepods-burstable-pod" UID_
	  ".slice:cri-containerd:" ID,
	  CGROUP_CONTAINERD, ID, UID, "containerd.service" },
	/* in a container of its own: kind, minikube */
	{ "/docker/" ID2 "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/"
	  "kubelet-kubepods-burstable-pod" UID_ ".slice/cri-containerd-" ID ".scope",
	  CGROUP_CONTAINERD, ID, UID, "" },
	{ "/system.slice/docker-" ID2
	  ".scope/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-pod" UID_
	  ".slice/cri-containerd-" ID ".scope",
	  CGROUP_CONTAINERD, ID, UID, "" },
	/* docker, podman, containerd alone */
	{ "/docker/" ID, CGROUP_DOCKER, ID, "", "" },
	{ "/docker/" ID "/init", CGROUP_DOCKER, ID, "", "" },
	{ "/docker/buildkit/xq3k2m1", CGROUP_DOCKER, "xq3k2m1", "", "" },
	{ "/system.slice/docker-" ID ".scope", CGROUP_DOCKER, ID, "", "" },
	{ "/system.slice/nerdctl-" ID ".scope", CGROUP_CONTAINERD, ID, "", "" },
	{ "/default/" ID, CGROUP_CONTAINERD, ID, "", "" },
	{ "/machine.slice/libpod-" ID ".scope", CGROUP_PODMAN, ID, "", "" },
	{ "/machine.slice/libpod-" ID ".scope/container", CGROUP_PODMAN, ID, "", "" },
	{ "/machine.slice/machine-libpod_pod_" ID2 ".slice/libpod-" ID ".scope", CGROUP_PODMAN, ID,
	  "", "" },
	{ "/machine.slice/libpod-conmon-" ID ".scope", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-" ID ".scope",
	  CGROUP_PODMAN, ID, "", "user@1000.service" },
	{ "/system.slice/web.service/libpod-payload-" ID, CGROUP_PODMAN, ID, "", "web.service" },
	/* LXC, systemd-nspawn, others */
	{ "/lxc/web", CGROUP_LXC, "web", "", "" },
	{ "/lxc.payload.web", CGROUP_LXC, "web", "", "" },
	{ "/lxc.payload.web/system.slice/ssh.service", CGROUP_LXC, "web", "", "" },
	{ "/lxc.monitor.web", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/machine.slice/machine-debian\\x2d12.scope", CGROUP_NSPAWN, "debian-12", "", "" },
	{ "/machine.slice/systemd-nspawn@web.service", CGROUP_NSPAWN, "web", "", "" },
	{ "/ecs/" STATIC "/" STATIC "-1234567890", CGROUP_OTHER, STATIC "-1234567890", "", "" },
	{ "/garden/" UID, CGROUP_OTHER, UID, "", "" },
	/* systemd */
	{ "/system.slice/ssh.service", CGROUP_NO_CONTAINER, "", "", "ssh.service" },
	{ "/system.slice/system-postgresql.slice/postgresql@9.4-main.service", CGROUP_NO_CONTAINER,
	  "", "", "postgresql@9.4-main.service" },
	{ "/system.slice/dev-disk\\x2dby\\x2duuid.service", CGROUP_NO_CONTAINER, "", "",
	  "dev-disk-by-uuid.service" },
	{ "/user.slice/user-1000.slice/user@1000.service/app.slice/editor.service",
	  CGROUP_NO_CONTAINER, "", "", "editor.service" },
	{ "/user.slice/user-1000.slice/session-3.scope", CGROUP_NO_CONTAINER, "", "",
	  "session-3.scope" },
	{ "/system.slice/ssh.service/sub", CGROUP_NO_CONTAINER, "", "", "ssh.service" },
	{ "/system.slice/docker-" ID ".scope (deleted)", CGROUP_DOCKER, ID, "", "" },
	/* none of these */
	{ "", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/podruntime/kubelet", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/docker/readme", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/kubepods/burstable", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/kubepods.slice/kubepods-pod" UID_ "0.slice", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/pod" UID "/" ID, CGROUP_NO_CONTAINER, "", "", "" },
	{ "/a.slice:cri-containerd:", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/a::" ID, CGROUP_CONTAINERD, ID, "", "" },
	{ "//x//\\x", CGROUP_NO_CONTAINER, "", "", "" },
	{ "/\\x2.service", CGROUP_NO_CONTAINER, "", "", "\\x2.service" },
};

static void test_paths(void **state)
{
	struct cgroup_path got;

	(void)state;
	for (size_t i = 0; i < ARRAY_SIZE(paths); i++) {
		cgroup_path__parse(paths[i].path, &got);
		if (got.runtime != paths[i].runtime || strcmp(got.container, paths[i].container) ||
		    strcmp(got.pod, paths[i].pod) || strcmp(got.unit, paths[i].unit))
			fail_msg("%s: runtime %d, container '%s', pod '%s', unit '%s'",
				 paths[i].path, got.runtime, got.container, got.pod, got.unit);
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
	const struct cgroup *g, *same;
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
	c = cgroups__new();
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
	cgroups__unref(same);
	same = cgroups__find(c, id);
	assert_ptr_equal(g, same);
	/* others that are met do not take its place */
	for (uint64_t i = 1; i < 2 * CGROUPS_MAX; i++)
		assert_null(cgroups__find(c, i << 40));
	assert_string_equal(g->path, name);
	same = cgroups__find(c, id);
	assert_ptr_equal(g, same);
	for (int i = 0; i < 3; i++)
		cgroups__unref(g);
	cgroups__free(c);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_paths),
		cmocka_unit_test(test_hostile),
		cmocka_unit_test(test_of_this_machine),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}

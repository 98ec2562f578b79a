/* SPDX-License-Identifier: BSD-2-Clause */
/* The probe that counts what a command does: what it is, and where it goes. */
#ifndef CAPTURE_OPS_H
#define CAPTURE_OPS_H

#include <limits.h>
#include <stddef.h>

#include "target/probe_sites.h"

struct objects;

/* As it is named: uprobe:[FILE:]FUNCTION or usdt:[FILE:]PROVIDER:NAME. */
struct ops_probe {
	char file[PATH_MAX];		     /* "": the command's own program */
	char provider[PROBE_SITES_MAX_NAME]; /* "": it is a function */
	char name[PROBE_SITES_MAX_NAME];
};

/* In "::" of a function's name there is no end of a file's. 0; -EINVAL: it is of neither form. */
int ops_probe_parse(const char *text, struct ops_probe *ret);

/* Where it goes. */
struct ops_sites {
	int fd; /* the file, O_PATH */
	char path[PATH_MAX];
	struct probe_sites sites;
};

/* probe: as ops_probe_parse takes it; argv0: the command, which is looked for in PATH. 0; -errno with a
 * sentence in err, and nothing to be released. */
int ops_sites__find(struct ops_sites *s, struct objects *objects, const char *probe,
		    const char *argv0, char *err, size_t err_sz);
void ops_sites__done(struct ops_sites *s);

#endif

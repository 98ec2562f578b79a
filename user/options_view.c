// SPDX-License-Identifier: BSD-2-Clause
#include "options_view.h"

#include <errno.h>
#include <stdlib.h>

#include "base/util.h"
#include "options_table.h"

static int parse_format(struct options *o, const char *arg, char *err, size_t err_sz)
{
	char names[VIEW_FORMAT_NAMES_SZ];

	o->view.format = view_format_find(arg);
	if (o->view.format)
		return 0;
	view_format_names(names, sizeof(names));
	return util_fail(-EINVAL, err, err_sz, "--format: unknown format '%s': choose from %s", arg,
			 names);
}

static int parse_share(struct options *o, const char *arg, char *err, size_t err_sz)
{
	double percent;

	if (util_parse_percent(arg, 100, &percent))
		return util_fail(-EINVAL, err, err_sz,
				 "--min-share: '%s' is no percentage from 0 to 100, such as 0.5",
				 arg);
	o->view.min_share = percent / 100;
	o->view.has_min_share = true;
	return 0;
}

static int add_base(struct options *o, const char *arg, char *err, size_t err_sz)
{
	size_t cnt = 0;
	const char **bases;

	while (o->view.bases && o->view.bases[cnt])
		cnt++;
	bases = reallocarray(o->view.bases, cnt + 2, sizeof(*bases));
	if (!bases)
		return util_fail(-ENOMEM, err, err_sz, "out of memory");
	bases[cnt] = arg;
	bases[cnt + 1] = NULL;
	o->view.bases = bases;
	return 0;
}

int options_view_apply(struct options *o, int val, const char *arg, char *err, size_t err_sz)
{
	uint64_t limit;

	switch (val) {
	case 'o':
		o->output = arg;
		return *arg ? 0 : util_fail(-EINVAL, err, err_sz, "--output: the path is empty");
	case 'f':
		return parse_format(o, arg, err, err_sz);
	case OPT_BASE:
		return add_base(o, arg, err, err_sz);
	case OPT_VALUE:
		o->view.value = arg;
		return 0;
	case OPT_FOCUS:
		o->view.focus = arg;
		return view_check_focus(arg, err, err_sz);
	case OPT_LIMIT:
		if (util_parse_u64(arg, 1, UINT32_MAX, &limit))
			return util_fail(
				-EINVAL, err, err_sz,
				"--limit: '%s' is no number of lines from 1 on, such as 20", arg);
		o->view.limit = limit;
		return 0;
	case OPT_MIN_SHARE:
		return parse_share(o, arg, err, err_sz);
	default: /* OPT_TREE */
		o->view.tree = true;
		return 0;
	}
}

int options_view_finish(struct options *o, char **files, char *err, size_t err_sz)
{
	if (!*files)
		return util_fail(-EINVAL, err, err_sz, "nothing to %s: give files of profiles",
				 o->command == OPTIONS_VIEW ? "show" : "add up");
	if (o->command == OPTIONS_MERGE && !o->output)
		return util_fail(-EINVAL, err, err_sz,
				 "--output is missing: give the file for the sum, or - for "
				 "standard output");
	if (o->view.format && o->view.format->whole &&
	    (o->view.tree || o->view.focus || o->view.limit))
		return util_fail(
			-EINVAL, err, err_sz,
			"--tree, --focus and --limit are not for --format %s, which shows all",
			o->view.format->name);
	if (o->view.bases && o->view.tree)
		return util_fail(-EINVAL, err, err_sz,
				 "--tree is not for --base: --format html shows both sides as a "
				 "tree");
	if (o->view.has_min_share && !o->view.tree)
		return util_fail(-EINVAL, err, err_sz, "--min-share is for --tree");
	o->files = files;
	return 0;
}

// SPDX-License-Identifier: BSD-2-Clause
#include <linux/types.h>

#include "report/finish_profile.h"

#include "kinds.h"
#include "profile/go_frames.h"
#include "profile/machinery.h"
#include "profile/profile.h"
#include "report/formats.h"

int finish_profile(const struct format *format, enum bpfprof_kind kind, struct profile *p)
{
	int err = 0;

	go_frames__elide(p);
	if (format->like_pprof)
		go_frames__like_pprof(p);
	if (kinds[kind].hide)
		kinds[kind].hide(p);
	if (kinds[kind].drops)
		err = machinery_hide(p, kinds[kind].drops);
	return err ? err : profile__finish(p);
}

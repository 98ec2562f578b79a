/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * Pyroscope and Parca: a series by its labels, and a profile of pprof for it. Both would make a
 * series of its own for each set of labels that samples have, or forget them: samples have none but
 * what leads to a trace.
 */
#include <errno.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/util.h"
#include "courier/stores_parts.h"
#include "parca.pb-c.h"
#include "profile/pprof.h"
#include "profile/pprof_read.h"
#include "profile/profile.h"
#include "pyroscope.pb-c.h"

#define FRAME_HEAD 5	   /* of gRPC: flags, length */
#define FRAME_TRAILER 0x80 /* gRPC-Web: headers that come last */

/* ---- the profile ---- */

static bool is_of_trace(const char *key)
{
	return !strcmp(key, "trace_id") || !strcmp(key, "span_id");
}

/* After an error there is nothing to free. */
static int write_profile(const struct profile *p, struct body *ret)
{
	char *data = NULL;
	FILE *f = open_memstream(&data, &ret->sz);
	int err;

	*ret = (struct body){ 0 };
	if (!f)
		return -ENOMEM;
	err = pprof_write(p, f);
	if (fclose(f) && !err)
		err = -ENOMEM;
	if (err)
		free(data);
	else
		ret->data = data;
	return err;
}

/* Finished. *ret is the caller's to free, also after an error. */
static int read_profile(const struct item *item, struct profile **ret)
{
	int err = pprof_read_keeping(item->file, item->sz, is_of_trace, ret);

	if (!err)
		err = profile__finish(*ret);
	return err == -E2BIG ? -EBADMSG : err;
}

static int plain_profile(const struct item *item, struct body *ret)
{
	struct profile *p;
	int err = read_profile(item, &p);

	if (!err)
		err = write_profile(p, ret);
	profile__free(p);
	return err;
}

/* ---- the labels ---- */

/* What lasts longer than a container, and is not made of numbers. */
static const char *const kept[] = {
	"service_name",	   "service_namespace",
	"service_version", "deployment_environment",
	"namespace",	   "pod",
	"container",	   "unit",
};

static int by_key(const void *a, const void *b)
{
	return strcmp(((const struct label *)a)->key, ((const struct label *)b)->key);
}

/* Sorted. */
static void series_labels(const struct item *item, struct labels *ret)
{
	const char *kind = labels__get(&item->labels, "kind");

	labels__add(ret, "__name__", store_profile_name(kind ?: "profile"));
	labels__add(ret, "node", item->node);
	for (size_t i = 0; i < ARRAY_SIZE(kept); i++)
		labels__add(ret, kept[i], labels__get(&item->labels, kept[i]));
	qsort(ret->v, ret->cnt, sizeof(*ret->v), by_key);
}

static int pack(const ProtobufCMessage *m, size_t head, struct body *ret)
{
	size_t sz = protobuf_c_message_get_packed_size(m);

	ret->data = malloc(head + sz + 1);
	if (!ret->data)
		return -ENOMEM;
	ret->sz = head + sz;
	protobuf_c_message_pack(m, (uint8_t *)ret->data + head);
	return 0;
}

/* ---- Pyroscope ---- */

int series_pyroscope_body(const struct item *item, struct body *ret)
{
	Pyroscope__PushRequest request = PYROSCOPE__PUSH_REQUEST__INIT;
	Pyroscope__RawProfileSeries series = PYROSCOPE__RAW_PROFILE_SERIES__INIT;
	Pyroscope__RawSample sample = PYROSCOPE__RAW_SAMPLE__INIT;
	Pyroscope__LabelPair pairs[LABELS_MAX], *pair_ptrs[LABELS_MAX];
	struct labels labels = { 0 };
	struct body profile;
	int err = plain_profile(item, &profile);

	if (err)
		return err;
	/* counts of the window alone, of which no differences are to be made */
	labels__add(&labels, "__delta__", "false");
	series_labels(item, &labels);
	for (size_t i = 0; i < labels.cnt; i++) {
		pyroscope__label_pair__init(&pairs[i]);
		pairs[i].name = (char *)labels.v[i].key;
		pairs[i].value = (char *)labels.v[i].value;
		pair_ptrs[i] = &pairs[i];
	}
	sample.raw_profile = (ProtobufCBinaryData){ profile.sz, profile.data };
	series.n_labels = labels.cnt;
	series.labels = pair_ptrs;
	series.n_samples = 1;
	series.samples = (Pyroscope__RawSample *[]){ &sample };
	request.n_series = 1;
	request.series = (Pyroscope__RawProfileSeries *[]){ &series };
	err = pack(&request.base, 0, ret);
	free(profile.data);
	return err;
}

/* Errors are JSON, whose code says more than the status: {"code":"…", …} */
int series_connect_status(const struct answer *a)
{
	static const char key[] = "\"code\":\"";
	const char *at = strstr(a->body, key);
	char code[32];
	int status;

	if (a->http < 400 || !at)
		return a->http;
	at += strlen(key);
	snprintf(code, sizeof(code), "%.*s", (int)strcspn(at, "\""), at);
	status = retry_connect_status(code);
	return status ? status : a->http;
}

/* ---- Parca ---- */

/* Is it of the moment at which the window ended, and not of all of it? */
static bool is_of_moment(const struct profile_value_type *t)
{
	return !strncmp(t->type, "inuse_", strlen("inuse_"));
}

static bool has_values_of_moment(const struct profile *p)
{
	for (size_t i = 0; i < p->value_cnt; i++)
		if (is_of_moment(&p->value_types[i]))
			return true;
	return false;
}

/* One sample's values that are of the moment, or the others. False: there is nothing of them. */
static bool pick_values(const struct profile *p, const struct profile_sample *s, bool of_moment,
			int64_t *ret)
{
	const int64_t *values = profile__values(p, s);
	bool any = false;

	for (size_t i = 0; i < p->value_cnt; i++)
		if (is_of_moment(&p->value_types[i]) == of_moment) {
			any |= values[i] != 0;
			*ret++ = values[i];
		}
	return any;
}

/* Writes p with these values alone, unless there are none: ret->data is NULL then. After an error there is
 * nothing to free. */
static int write_values(const struct profile *p, bool of_moment, struct body *ret)
{
	struct profile some = *p;
	int err;

	some.samples = malloc((p->sample_cnt + 1) * sizeof(*some.samples));
	some.values = malloc((p->sample_cnt + 1) * p->value_cnt * sizeof(*some.values));
	some.sample_cnt = some.value_cnt = 0;
	some.default_type = 0;
	/* Parca takes what has a duration for a difference */
	some.duration_ns = of_moment ? 0 : p->duration_ns;
	for (size_t i = 0; i < p->value_cnt; i++)
		if (is_of_moment(&p->value_types[i]) == of_moment)
			some.value_types[some.value_cnt++] = p->value_types[i];
	for (size_t i = 0; some.samples && some.values && i < p->sample_cnt; i++)
		if (pick_values(p, &p->samples[i], of_moment,
				some.values + some.sample_cnt * some.value_cnt))
			some.samples[some.sample_cnt++] = p->samples[i];
	*ret = (struct body){ 0 };
	err = some.samples && some.values ? 0 : -ENOMEM;
	if (some.sample_cnt)
		err = write_profile(&some, ret);
	free(some.samples);
	free(some.values);
	return err;
}

/* One, or two where there are values of the moment and others. *ret_cnt: the caller's to free, also after an
 * error. */
static int parca_profiles(const struct item *item, struct body ret[static 2], size_t *ret_cnt)
{
	struct profile *p;
	int err = read_profile(item, &p);
	bool falls_apart = !err && has_values_of_moment(p);

	*ret_cnt = 0;
	for (int of_moment = 0; !err && falls_apart && of_moment < 2; of_moment++) {
		err = write_values(p, of_moment, &ret[*ret_cnt]);
		*ret_cnt += !err && ret[*ret_cnt].data;
	}
	if (!err && !*ret_cnt) {
		err = write_profile(p, &ret[0]);
		*ret_cnt = !err;
	}
	profile__free(p);
	return err;
}

int series_parca_body(const struct item *item, struct body *ret)
{
	Parca__WriteRawRequest request = PARCA__WRITE_RAW_REQUEST__INIT;
	Parca__RawProfileSeries series = PARCA__RAW_PROFILE_SERIES__INIT;
	Parca__LabelSet set = PARCA__LABEL_SET__INIT;
	Parca__RawSample samples[2], *sample_ptrs[2];
	Parca__Label pairs[LABELS_MAX], *pair_ptrs[LABELS_MAX];
	struct labels labels = { 0 };
	struct body profiles[2];
	size_t cnt;
	uint8_t *head;
	int err = parca_profiles(item, profiles, &cnt);

	series_labels(item, &labels);
	for (size_t i = 0; i < labels.cnt; i++) {
		parca__label__init(&pairs[i]);
		pairs[i].name = (char *)labels.v[i].key;
		pairs[i].value = (char *)labels.v[i].value;
		pair_ptrs[i] = &pairs[i];
	}
	set.n_labels = labels.cnt;
	set.labels = pair_ptrs;
	for (size_t i = 0; i < cnt; i++) {
		parca__raw_sample__init(&samples[i]);
		samples[i].raw_profile = (ProtobufCBinaryData){ profiles[i].sz, profiles[i].data };
		sample_ptrs[i] = &samples[i];
	}
	series.labels = &set;
	series.n_samples = cnt;
	series.samples = sample_ptrs;
	request.n_series = 1;
	request.series = (Parca__RawProfileSeries *[]){ &series };
	if (!err)
		err = pack(&request.base, FRAME_HEAD, ret);
	while (cnt)
		free(profiles[--cnt].data);
	if (err)
		return err;
	head = ret->data;
	head[0] = 0;
	for (int i = 1; i < FRAME_HEAD; i++)
		head[i] = (uint8_t)((ret->sz - FRAME_HEAD) >> 8 * (FRAME_HEAD - 1 - i));
	return 0;
}

/* The trailer's frame; NULL: there is none. */
static const char *find_trailer(const struct answer *a, size_t *ret_sz)
{
	const uint8_t *p = (const uint8_t *)a->body, *end = p + a->body_sz;

	while (end - p >= FRAME_HEAD) {
		size_t sz = (size_t)p[1] << 24 | p[2] << 16 | p[3] << 8 | p[4];
		bool trailer = p[0] & FRAME_TRAILER;

		p += FRAME_HEAD;
		if (sz > (size_t)(end - p))
			return NULL;
		*ret_sz = sz;
		if (trailer)
			return (const char *)p;
		p += sz;
	}
	return NULL;
}

/* "grpc-status: 3" among the headers, or in the frame behind the answer. */
bool series_grpc_web_end(const struct answer *a, struct grpc_end *ret)
{
	const char *trailer;
	size_t sz;

	*ret = a->grpc;
	if (ret->status >= 0)
		return true;
	trailer = find_trailer(a, &sz);
	if (trailer)
		grpc_end__take_all(ret, trailer, sz);
	return trailer;
}

/* HTTP says that all is well, whatever gRPC says. */
int series_grpc_web_status(const struct answer *a)
{
	struct grpc_end end;
	int status;

	if (a->http != 200)
		return a->http;
	/* it has taken all, and says nothing of what became of it */
	if (!series_grpc_web_end(a, &end))
		return ANSWER_NONE_SENT;
	status = retry_grpc_status(end.status);
	return status ? status : 500;
}

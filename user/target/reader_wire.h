/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the collector and its reader say to each other. Both are one program on one machine, so
 * structures go as they lie in memory; but the reader may have been taken over by what it read.
 *
 * First of all, to the collector: from the reader READER_READY, from the opener a struct
 * reader_opened. From then on:
 *
 * From the collector to the opener: "" with its NUL, and O_PATH descriptors; or a path with its
 * NUL; or a name with its NUL, and the O_PATH descriptor of the folder; or a path that begins with
 * '/', with its NUL, behind that a uint32_t, who it is walked for (target/path_walk.h), and the O_PATH
 * descriptor of the root that it is seen from.
 *
 * From the opener to the reader, for descriptors: struct reader_opened, with the same files opened
 * for reading, then a second one when the opener has closed them.
 *
 * From the opener to the collector, for a path: struct reader_opened, with an O_PATH descriptor.
 *
 * From the collector to the reader: struct reader_request; then, for READER_NAMES, READER_PERF_MAP and
 * READER_PIECES, cnt addresses, and for READER_CONTEXT, READER_SITES and READER_CONTAINER cnt bytes.
 *
 * From the reader to the collector: int32_t, 0 or -errno; if 0, what the request asks for; then
 * READER_DONE, when it has closed the files.
 */
#ifndef TARGET_READER_WIRE_H
#define TARGET_READER_WIRE_H

#include <stdint.h>

#include "target/elf_file.h"
#include "helper/fd_message.h"
#include "target/reader.h"

#define READER_MAX_ADDRESSES (16U << 20)
#define READER_READY 0x52454459
#define READER_DONE 0x444f4e45

enum reader_op {
	READER_DESCRIBE,       /* struct reader_description, segment_cnt * struct reader_segment */
	READER_DESCRIBE_DEBUG, /* the same, of a file of debug information */
	READER_BYTES,	       /* cnt bytes of the file at offset */
	READER_CRC,	       /* uint32_t, of the whole file */
	READER_UNWIND_TABLE,   /* struct reader_table, part_cnt * (struct reader_part, blob) */
	READER_HAS_USDT,       /* uint32_t */
	READER_ALLOCATORS,     /* uint64_t cnt, cnt * struct reader_point */
	READER_NAMES,	       /* struct reader_names, first, frames, strings: as struct symbols */
	READER_PLAIN_NAMES,    /* the same without debug information */
	READER_SPLIT_FILES,    /* the same, of paths: see reader__split_files */
	READER_PERF_MAP,       /* struct reader_perf_map, then as READER_NAMES */
	READER_ENVIRON,	       /* struct said, of an environment */
	READER_CONTEXT,	       /* struct said, of the message of a process context */
	READER_SITES,	       /* uint64_t cnt, cnt * struct probe_site; asked for by the
				  provider's and the probe's name, each with its NUL;
				  offset: enum probe_sites_use */
	READER_CUSTOM,	       /* uint64_t cnt, uint64_t refused, cnt * struct custom_site */
	READER_CONTAINER,      /* struct container_said; asked for by the container's id, with
				  its NUL; offset: enum container_file */
	READER_PIECES, /* for each address: uint32_t sz, sz bytes; offset: at most so many */
	READER_NR_OPS,
};

/* The files that are sent along, in the order of READER_FD_…: bit i of files is file i. */
#define READER_MAX_FILES READER_NAMES_FILES
#define READER_FILE_OBJECT (1U << READER_FD_OBJECT) /* without it the object is the vDSO */
#define READER_FILE_DEBUG (1U << READER_FD_DEBUG)

struct reader_request {
	uint32_t op;
	uint32_t files; /* READER_FILE_… */
	uint64_t offset;
	uint64_t cnt;
};

struct reader_opened {
	int32_t err; /* not 0: no file is sent along */
};

struct reader_description {
	uint32_t segment_cnt;
	uint32_t is_whole, has_debug_info, may_be_split;
	uint32_t build_id_sz, alt_id_sz;
	uint32_t debuglink_crc;
	uint8_t build_id[ELF_FILE_MAX_BUILD_ID], alt_id[ELF_FILE_MAX_BUILD_ID];
	char interp[32], sanitizer[32], debuglink[256], alt_name[READER_MAX_LINK];
};

struct reader_segment {
	uint64_t vaddr, offset, filesz, memsz;
	uint64_t exec;
};

struct reader_table {
	uint64_t part_cnt, row_cnt, rule_cnt, cfi_sz, unsupported_cnt;
};

struct reader_part {
	uint64_t vaddr;
	uint32_t text_sz, blob_sz;
};

struct reader_point {
	uint64_t offset, ref_ctr, cookie, vaddr;
	uint32_t group, skew, emulated;
	char name[64], insn[40];
};

struct reader_names {
	uint64_t frame_cnt, strings_sz;
};

struct reader_perf_map {
	uint64_t ignored, unread;
};

#endif

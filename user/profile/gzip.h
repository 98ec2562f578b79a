/* SPDX-License-Identifier: BSD-2-Clause */
/* The header of a gzip file: RFC 1952, 2.3.1. */
#ifndef PROFILE_GZIP_H
#define PROFILE_GZIP_H

#define GZIP_ID1 0x1f
#define GZIP_ID2 0x8b
#define GZIP_FLAGS 3	/* where they are */
#define GZIP_FEXTRA 4	/* flag: "extra field" follows, behind its length in two bytes */
#define GZIP_HEAD_SZ 10 /* bytes before what is optional */

#endif

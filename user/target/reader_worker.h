/* SPDX-License-Identifier: BSD-2-Clause */
/* The two processes behind a reader: see target/reader.h. */
#ifndef TARGET_READER_WORKER_H
#define TARGET_READER_WORKER_H

/* Each serves requests that arrive through descriptor 0 until the other end is gone; 1 leads from
 * the opener to the worker. */
void reader_worker(void);
void reader_opener(void);

#endif

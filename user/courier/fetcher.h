/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * The fetcher's loop: asks debuginfod servers for files of debug information, by build ids
 * (debuginfod(8)), one server after the other until one has it. A server that refuses, or gives nothing
 * in time, is not asked again; until one has answered for the first time it has one request at a time,
 * so that a dead one costs no more than that.
 */
#ifndef COURIER_FETCHER_H
#define COURIER_FETCHER_H

/* Serves a collector (courier/fetch_wire.h) until it has gone. 0 or -errno. */
int fetcher_serve(int sock);

#endif

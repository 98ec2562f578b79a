/* SPDX-License-Identifier: BSD-2-Clause */
/* The server of /debug/pprof/, by libmicrohttpd: between the collector's socket and those who ask. */
#ifndef COURIER_SERVER_H
#define COURIER_SERVER_H

/* Serves a collector (courier/serve_wire.h) until it has gone. 0 or -errno. */
int server_serve(int sock);

#endif

/* SPDX-License-Identifier: BSD-2-Clause */
/* The courier's loop: between the collector's socket and the network. */
#ifndef COURIER_COURIER_H
#define COURIER_COURIER_H

/* Serves a collector (courier/wire.h) until it has gone. 0 or -errno. */
int courier_serve(int sock);

#endif

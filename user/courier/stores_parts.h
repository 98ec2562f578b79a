/* SPDX-License-Identifier: BSD-2-Clause */
/* The forms that stores.c has rows of. For these files alone. */
#ifndef COURIER_STORES_PARTS_H
#define COURIER_STORES_PARTS_H

#include "courier/stores.h"

/* series.c: Pyroscope's push.v1, and Parca's WriteRaw in a frame of gRPC-Web. */
int series_pyroscope_body(const struct item *item, struct body *ret);
int series_parca_body(const struct item *item, struct body *ret);
int series_connect_status(const struct answer *a);
int series_grpc_web_status(const struct answer *a);
bool series_grpc_web_end(const struct answer *a, struct grpc_end *ret);

/* otlp.c: versions 1.10 and 1.9 of the protocol. */
int otlp_body(const struct item *item, struct body *ret);
int otlp_body_v9(const struct item *item, struct body *ret);
bool otlp_rejected(const struct answer *a, char ret[static STORE_SAID_SZ]);

#endif

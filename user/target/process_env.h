/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * What the environment says of a process's service: OTEL_SERVICE_NAME, then service.name in
 * OTEL_RESOURCE_ATTRIBUTES, then DD_SERVICE; the other facts by OTEL_RESOURCE_ATTRIBUTES alone
 * (OpenTelemetry specification 1.60, configuration/sdk-environment-variables.md and resource/sdk.md,
 * "Specifying resource information via an environment variable"; DD_SERVICE is Datadog's "unified
 * service tagging"). It is the environment that the program was started with: setenv(3) is not seen,
 * see proc_pid_environ(5). No other variable is looked at.
 */
#ifndef TARGET_PROCESS_ENV_H
#define TARGET_PROCESS_ENV_H

#include <stddef.h>

#include "target/said.h"

#define PROCESS_ENV_MAX (1U << 20) /* bytes that are read; variables behind them are not seen */

/*
 * Variables as NAME=VALUE with a NUL each; of two with one name the first counts, as for getenv(3).
 * What OTEL_RESOURCE_ATTRIBUTES has counts as a whole or, if it is not well formed, not at all. *ret:
 * without a service's name it has no other fact either.
 */
void process_env_parse(const char *data, size_t sz, struct said *ret);

/* The same of /proc/PID/environ, open for reading. 0; -ENODATA: it is empty, as that of a program is
 * which is still being started; -errno of reading. For one thread. */
int process_env_read(int fd, struct said *ret);

#endif

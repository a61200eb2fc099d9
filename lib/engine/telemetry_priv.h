/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The instance that the telemetry commands report: the first of the process that is registered,
 * until eng_destroy(). A mutex protects it, because commands run on threads of DPDK.
 */
#ifndef SAKER_ENGINE_TELEMETRY_PRIV_H
#define SAKER_ENGINE_TELEMETRY_PRIV_H

#include <stdbool.h>

struct eng;

/* Makes `e` the reported instance if there is none. Callable from any thread. */
void eng_telemetry_remember(struct eng *e);
/* Ends the reports about `e`, if it is the reported instance. Waits until a command that runs at
 * the moment has returned. Callable from any thread. */
void eng_telemetry_forget(const struct eng *e);
/* Returns the reported instance and locks it: it exists until eng_telemetry_release(). Returns
 * NULL, without the lock, when there is none. */
struct eng *eng_telemetry_hold(void);
/* Unlocks the instance that eng_telemetry_hold() has returned. */
void eng_telemetry_release(void);

#endif

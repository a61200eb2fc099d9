/* SPDX-License-Identifier: BSD-3-Clause */
/* Telemetry looks into one instance of the process, from its registration until the instance is
 * about to go. */
#ifndef SAKER_ENGINE_TELEMETRY_PRIV_H
#define SAKER_ENGINE_TELEMETRY_PRIV_H

#include <stdbool.h>

struct eng;

/* Makes `e` the instance that is looked into if there is none. Any thread. */
void eng_telemetry_remember(struct eng *e);
/* Waits for a command that is being answered. Any thread. */
void eng_telemetry_forget(const struct eng *e);
/* The instance, held until eng_telemetry_release(); NULL (and nothing held) when there is none. */
struct eng *eng_telemetry_hold(void);
void eng_telemetry_release(void);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client can take away memory that it shares (truncate the file, punch holes where no page can be
 * had again): the engine's next access raises SIGBUS. The handler puts zero pages there and marks
 * the client; the access is repeated and finds zeros.
 */
#ifndef SAKER_ENGINE_SIGBUS_PRIV_H
#define SAKER_ENGINE_SIGBUS_PRIV_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Process-wide, once; a handler that was there before gets what is not ours. 0 or -errno. */
int sigbus_install(void);
/* Guards a mapping: `flag` is set (atomically) when it was hit. Returns a number, or -ENOSPC. */
int sigbus_guard(void *base, size_t len, bool *flag);
void sigbus_unguard(int guard);
/* How many faults were mended; grows. */
uint32_t sigbus_count(void);

#endif

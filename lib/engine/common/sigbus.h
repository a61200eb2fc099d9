/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client can take away memory that it shares (truncate the file, punch holes where no page can be
 * had again): the engine's next access raises SIGBUS. The handler puts zero pages there and marks
 * the client; the access is repeated and finds zeros.
 */
#ifndef SAKER_ENGINE_SIGBUS_H
#define SAKER_ENGINE_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Installs the handler: process-wide, once. It passes faults on that are not in guarded memory to
 * the handler that was there before. eng_guard() does the same. Returns 0 or -errno. */
int eng_sigbus_install(void);
/* Returns how many faults were repaired; it grows. Any thread. */
uint32_t eng_sigbus_count(void);

#endif

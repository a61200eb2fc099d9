/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * A client can remove memory that it shares with the engine: it can truncate the file, or punch a
 * hole while no page is free to fill it. The engine's next access then raises SIGBUS. The handler
 * maps zero pages in place of the region and marks the client. The processor repeats the access,
 * which reads zeros.
 */
#ifndef SAKER_ENGINE_SIGBUS_H
#define SAKER_ENGINE_SIGBUS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Installs the handler for the whole process; further calls have no effect. The handler passes a
 * fault outside of guarded memory to the handler that was installed before. eng_guard() calls this
 * function, too. Returns 0, or -errno of sigaction(2). */
int eng_sigbus_install(void);
/* Returns the number of faults that the handler has repaired; it never decreases. Any thread. */
uint32_t eng_sigbus_count(void);

#endif

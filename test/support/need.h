/* SPDX-License-Identifier: BSD-3-Clause */
/* Checks of a test's own harness, which no test expects to fail. */
#ifndef TEST_NEED_H
#define TEST_NEED_H

#include <stdbool.h>
#include <stdlib.h>

/* Aborts the program when `ok` is false. */
static inline void
need(bool ok)
{
	if (!ok)
		abort();
}

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The sentence about the last failure, one for each thread. */
#include <stdarg.h>
#include <stdio.h>

#include "move_priv.h"

static _Thread_local char move_error_text[256];

const char *
mv_error(void)
{
	return move_error_text;
}

int
mv_fail(int rc, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(move_error_text, sizeof(move_error_text), fmt, ap);
	va_end(ap);
	return rc;
}

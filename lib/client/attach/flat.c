/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching to a flat region, which also contains the memory that the client registers. */
#include <errno.h>

#include "../client_priv.h"

int
saker_open_flat(void *base, size_t size, void (*idle)(void *arg), void *arg, struct saker **out)
{
	struct saker *s = cl_new();
	int rc;

	if (s == NULL)
		return cl_fail(-ENOMEM, "no memory for an attachment");
	s->idle = idle;
	s->idle_arg = arg;
	rc = cl_start(s, base, size);
	if (rc < 0) {
		cl_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Attaching to a flat region: everything is in it, also the memory that the client registers;
 * nothing travels beside it. */
#include <errno.h>

#include "client_priv.h"

int
saker_open_flat(void *base, size_t size, void (*idle)(void *arg), void *arg, struct saker **out)
{
	struct saker *s = cl_new();
	const struct shm_header *h = base;
	int rc;

	if (s == NULL)
		return cl_fail(-ENOMEM, "no memory for an attachment");
	s->idle = idle;
	s->idle_arg = arg;
	rc = cl_start(s, base, size);
	if (rc == 0 && h->mem_len != 0 &&
		cl_mem_add(s, s->home + h->mem, h->mem_len, SHM_HOME, h->mem, false) < 0)
		rc = cl_fail(-ENOMEM, "no memory for an attachment");
	if (rc < 0) {
		cl_free(s);
		return rc;
	}
	*out = s;
	return 0;
}

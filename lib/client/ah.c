/* SPDX-License-Identifier: BSD-3-Clause */
/* Address handles: the hosts that datagrams may go to. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

int
saker_ah_create(struct saker_pd *pd, const struct sk_addr *remote, struct saker_ah **out)
{
	return saker_ah_create_as(pd, remote, SAKER_ORDER_CONFIGURED, out);
}

int
saker_ah_create_as(struct saker_pd *pd, const struct sk_addr *remote, enum saker_ordering ordering,
	struct saker_ah **out)
{
	const struct saker_class configured = {0};

	return saker_ah_create_class(pd, remote, ordering, &configured, out);
}

int
saker_ah_create_class(struct saker_pd *pd, const struct sk_addr *remote,
	enum saker_ordering ordering, const struct saker_class *traffic, struct saker_ah **out)
{
	struct saker *s = pd->obj.s;
	struct saker_ah *ah = cl_zalloc(sizeof(*ah));
	struct shm_msg m;
	int rc;

	if (ah == NULL)
		return cl_fail(-ENOMEM, "no memory for an address handle");
	memset(&m, 0, sizeof(m));
	m.body.ah.pd = pd->obj.handle;
	m.body.ah.remote = *remote;
	m.body.ah.ordering = (uint8_t)ordering;
	cl_class_to(traffic, &m.body.ah.class);
	rc = cl_command(s, &m, SHM_AH_CREATE);
	if (rc == 0)
		rc = cl_obj_add(s, &ah->obj, ah, CL_AH, m.body.ah.ah);
	if (rc < 0) {
		free(ah);
		return rc;
	}
	*out = ah;
	return 0;
}

int
saker_ah_destroy(struct saker_ah *ah)
{
	return cl_obj_destroy(&ah->obj);
}

uint32_t
cl_ah_handle(const struct saker_ah *ah)
{
	return ah->obj.handle;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Protection domains and memory regions. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "client_priv.h"

int
saker_pd_create(struct saker *s, struct saker_pd **out)
{
	struct saker_pd *pd = cl_zalloc(sizeof(*pd));
	struct shm_msg m;
	int rc;

	if (pd == NULL)
		return cl_fail(-ENOMEM, "no memory for a protection domain");
	memset(&m, 0, sizeof(m));
	rc = cl_command(s, &m, SHM_PD_CREATE);
	if (rc == 0)
		rc = cl_obj_add(s, &pd->obj, pd, CL_PD, m.body.handle);
	if (rc < 0) {
		free(pd);
		return rc;
	}
	*out = pd;
	return 0;
}

int
saker_pd_destroy(struct saker_pd *pd)
{
	return cl_obj_destroy(&pd->obj);
}

int
saker_mr_create(struct saker_pd *pd, void *addr, size_t len, uint32_t access, struct saker_mr **out)
{
	struct saker *s = pd->obj.s;
	struct saker_mr *mr;
	struct shm_msg m;
	int rc;

	memset(&m, 0, sizeof(m));
	if (len == 0 || !cl_mem_find(s, addr, len, &m.body.mr.extents[0]))
		return cl_fail(
			-EFAULT, "%zu bytes at %p are not memory from saker_alloc()", len, addr);
	mr = cl_zalloc(sizeof(*mr));
	if (mr == NULL)
		return cl_fail(-ENOMEM, "no memory for a memory region");
	m.body.mr.pd = pd->obj.handle;
	m.body.mr.access = access;
	m.body.mr.base = (uintptr_t)addr;
	m.body.mr.len = len;
	m.body.mr.nextents = 1;
	rc = cl_command(s, &m, SHM_MR_CREATE);
	mr->stag = m.body.mr.stag;
	if (rc == 0)
		rc = cl_obj_add(s, &mr->obj, mr, CL_MR, m.body.mr.mr);
	if (rc < 0) {
		free(mr);
		return rc;
	}
	*out = mr;
	return 0;
}

int
saker_mr_destroy(struct saker_mr *mr)
{
	return cl_obj_destroy(&mr->obj);
}

uint32_t
saker_mr_stag(const struct saker_mr *mr)
{
	return mr->stag;
}

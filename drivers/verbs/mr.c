/* SPDX-License-Identifier: BSD-3-Clause */
/* Memory regions. libsaker moves private memory of the program into shared memory in place, without
 * a second copy, and takes shared memory as it is. This file converts between the calls of verbs
 * and libsaker's. */
#include <stdlib.h>

#include "verbs_priv.h"

#define RIGHTS                                                                                     \
	(IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |               \
		IBV_ACCESS_REMOTE_ATOMIC | IBV_ACCESS_MW_BIND | IBV_ACCESS_ZERO_BASED)
/* The library accepts these flags and ignores them. */
#define HINTS  (IBV_ACCESS_HUGETLB | IBV_ACCESS_OPTIONAL_RANGE)
#define WRITES (IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_ATOMIC)

static struct vb_mr *
vb_mr(struct ibv_mr *mr)
{
	return (struct vb_mr *)mr;
}

static int
access_check(unsigned int access)
{
	if ((access & IBV_ACCESS_ON_DEMAND) != 0)
		return vb_fail(EOPNOTSUPP, "IBV_ACCESS_ON_DEMAND is not supported");
	if ((access & ~(unsigned)(RIGHTS | HINTS)) != 0)
		return vb_fail(
			EINVAL, "unknown access rights %#x", access & ~(unsigned)(RIGHTS | HINTS));
	if ((access & WRITES) != 0 && (access & IBV_ACCESS_LOCAL_WRITE) == 0)
		return vb_fail(
			EINVAL, "remote write and atomic access need IBV_ACCESS_LOCAL_WRITE");
	return 0;
}

/* Registers the range and rights in *mr and fills in its keys. Returns 0 or errno. */
static int
mr_enter_table(struct vb_mr *mr)
{
	int rc;

	rc = vb_rc(saker_mr_create_at(vb_pd(mr->mr.pd)->saker, mr->mr.addr, mr->mr.length, mr->iova,
			   mr->access & RIGHTS, &mr->saker),
		"ibv_reg_mr");
	if (rc == 0)
		mr->mr.lkey = mr->mr.rkey = saker_mr_stag(mr->saker);
	return rc;
}

static struct ibv_mr *
reg(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	struct vb_mr *mr = NULL;
	int rc = vb_alive(pd->context);

	if (rc == 0)
		rc = access_check(access);
	if (rc == 0 && (mr = calloc(1, sizeof(*mr))) == NULL)
		rc = ENOMEM;
	if (rc == 0) {
		mr->mr.context = pd->context;
		mr->mr.pd = pd;
		mr->mr.addr = addr;
		mr->mr.length = length;
		mr->iova = iova;
		mr->access = access;
		rc = mr_enter_table(mr);
	}
	if (rc == 0) {
		vb_mr_enter(mr);
		return &mr->mr;
	}
	free(mr);
	errno = rc;
	return NULL;
}

VB_EXPORT struct ibv_mr *
ibv_reg_mr(struct ibv_pd *pd, void *addr, size_t length, int access)
{
	return reg(pd, addr, length, (uintptr_t)addr, (unsigned)access);
}

VB_EXPORT struct ibv_mr *
ibv_reg_mr_iova(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, int access)
{
	return reg(pd, addr, length, iova, (unsigned)access);
}

VB_EXPORT struct ibv_mr *
ibv_reg_mr_iova2(struct ibv_pd *pd, void *addr, size_t length, uint64_t iova, unsigned int access)
{
	return reg(pd, addr, length, iova, access);
}

VB_EXPORT struct ibv_mr *
ibv_reg_dmabuf_mr(
	struct ibv_pd *pd, uint64_t offset, size_t length, uint64_t iova, int fd, int access)
{
	vb_fail(EOPNOTSUPP, "DMA buffers cannot be registered");
	return NULL;
}

VB_EXPORT int
ibv_dereg_mr(struct ibv_mr *mr)
{
	int rc = 0;

	if (vb_owned_live(mr->context, &vb_mr(mr)->owned) && vb_mr(mr)->saker != NULL)
		rc = vb_rc(saker_mr_destroy(vb_mr(mr)->saker), "ibv_dereg_mr");
	if (rc != 0)
		return rc;
	vb_mr_leave(vb_mr(mr));
	free(mr);
	return 0;
}

/* Replaces the region by one with the changed attributes. The keys stay: a program may have sent
 * them to peers. */
VB_EXPORT int
ibv_rereg_mr(struct ibv_mr *mr, int flags, struct ibv_pd *pd, void *addr, size_t length, int access)
{
	struct vb_mr now = *vb_mr(mr);

	if (flags <= 0 || (flags & ~IBV_REREG_MR_FLAGS_SUPPORTED) != 0 ||
		((flags & IBV_REREG_MR_CHANGE_PD) != 0 && pd == NULL))
		return vb_fail(EINVAL, "ibv_rereg_mr: flags %#x are invalid or need a domain",
			       flags),
		       IBV_REREG_MR_ERR_INPUT;
	if (now.saker == NULL)
		return vb_fail(EINVAL, "a memory region that was imported cannot be changed"),
		       IBV_REREG_MR_ERR_INPUT;
	if ((flags & IBV_REREG_MR_CHANGE_TRANSLATION) != 0) {
		now.mr.addr = addr;
		now.mr.length = length;
		now.iova = (uintptr_t)addr;
	}
	if ((flags & IBV_REREG_MR_CHANGE_PD) != 0)
		now.mr.pd = pd;
	if ((flags & IBV_REREG_MR_CHANGE_ACCESS) != 0)
		now.access = (uint32_t)access;
	if (vb_alive(mr->context) != 0 || access_check(now.access) != 0 ||
		vb_rc(saker_mr_replace(&now.saker, vb_pd(now.mr.pd)->saker, now.mr.addr,
			      now.mr.length, now.iova, now.access & RIGHTS),
			"ibv_rereg_mr") != 0)
		return IBV_REREG_MR_ERR_INPUT;
	*mr = now.mr;
	vb_mr(mr)->saker = now.saker;
	vb_mr(mr)->domain = vb_pd(now.mr.pd)->saker;
	vb_mr(mr)->iova = now.iova;
	vb_mr(mr)->access = now.access;
	return 0;
}

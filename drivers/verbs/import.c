/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Protection domains and memory regions that a program finds again by their handles, through
 * another context of the same device (ibv_import_pd(3), ibv_import_mr(3)). ibv_import_device() is
 * in context.c.
 */
#include <stdlib.h>

#include "process_priv.h"
#include "verbs_priv.h"

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static LIST_HEAD(, vb_pd) pds = LIST_HEAD_INITIALIZER(pds);
static LIST_HEAD(, vb_mr) mrs = LIST_HEAD_INITIALIZER(mrs);
static uint32_t last_handle;

void
vb_pd_enter(struct vb_pd *pd)
{
	vb_owned_enter(pd->pd.context, &pd->owned, VB_PD);
	pthread_mutex_lock(&lock);
	pd->at = vb_context(pd->pd.context)->at;
	pd->pd.handle = ++last_handle;
	LIST_INSERT_HEAD(&pds, pd, next);
	pthread_mutex_unlock(&lock);
}

void
vb_mr_enter(struct vb_mr *mr)
{
	vb_owned_enter(mr->mr.context, &mr->owned, VB_MR);
	pthread_mutex_lock(&lock);
	mr->domain = vb_pd(mr->mr.pd)->saker;
	mr->mr.handle = ++last_handle;
	LIST_INSERT_HEAD(&mrs, mr, next);
	pthread_mutex_unlock(&lock);
}

void
vb_pd_leave(struct vb_pd *pd)
{
	pthread_mutex_lock(&lock);
	LIST_REMOVE(pd, next);
	pthread_mutex_unlock(&lock);
	vb_owned_leave(&pd->owned);
}

void
vb_mr_leave(struct vb_mr *mr)
{
	pthread_mutex_lock(&lock);
	LIST_REMOVE(mr, next);
	pthread_mutex_unlock(&lock);
	vb_owned_leave(&mr->owned);
}

void
vb_objects_hide(const struct ibv_context *context)
{
	struct vb_pd *pd;
	struct vb_mr *mr;

	pthread_mutex_lock(&lock);
	LIST_FOREACH (pd, &pds, next)
		if (pd->pd.context == context)
			pd->pd.handle = 0;
	LIST_FOREACH (mr, &mrs, next)
		if (mr->mr.context == context)
			mr->mr.handle = 0;
	pthread_mutex_unlock(&lock);
}

VB_EXPORT struct ibv_pd *
ibv_import_pd(struct ibv_context *context, uint32_t pd_handle)
{
	struct vb_pd *pd = calloc(1, sizeof(*pd)), *of;

	if (pd == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	LIST_FOREACH (of, &pds, next)
		if (pd_handle != 0 && of->pd.handle == pd_handle &&
			of->at == vb_context(context)->at)
			break;
	if (of != NULL)
		vb_hold(&of->refs);
	pthread_mutex_unlock(&lock);
	if (of == NULL) {
		free(pd);
		vb_fail(EINVAL, "the process has no protection domain with handle %u", pd_handle);
		return NULL;
	}
	pd->pd.context = context;
	pd->parent = of;
	pd->saker = of->saker;
	vb_pd_enter(pd);
	return &pd->pd;
}

VB_EXPORT void
ibv_unimport_pd(struct ibv_pd *p)
{
	struct vb_pd *pd = vb_pd(p);

	vb_pd_leave(pd);
	vb_release(&pd->parent->refs);
	free(pd);
}

/* As with real devices, the program cannot see the address of the region. */
VB_EXPORT struct ibv_mr *
ibv_import_mr(struct ibv_pd *pd, uint32_t mr_handle)
{
	struct vb_mr *mr = calloc(1, sizeof(*mr)), *of;

	if (mr == NULL) {
		errno = ENOMEM;
		return NULL;
	}
	pthread_mutex_lock(&lock);
	LIST_FOREACH (of, &mrs, next)
		if (mr_handle != 0 && of->mr.handle == mr_handle && of->domain == vb_pd(pd)->saker)
			break;
	if (of != NULL)
		mr->mr = of->mr;
	pthread_mutex_unlock(&lock);
	if (of == NULL) {
		free(mr);
		vb_fail(EINVAL, "the protection domain has no memory region with handle %u",
			mr_handle);
		return NULL;
	}
	mr->mr.context = pd->context;
	mr->mr.pd = pd;
	mr->mr.addr = NULL;
	vb_mr_enter(mr);
	return &mr->mr;
}

VB_EXPORT void
ibv_unimport_mr(struct ibv_mr *mr)
{
	vb_mr_leave((struct vb_mr *)mr);
	free(mr);
}

/* ---- fork(2) ---- */

void
vb_objects_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

void
vb_objects_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

void
vb_objects_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The end of the objects that a program has left in a context that it closes. A kernel destroys
 * them with the descriptor of the context: peers reach no memory of theirs any more.
 */
#include "process_priv.h"
#include "verbs_priv.h"

static int
xrcd_end(const struct vb_xrcd *x)
{
	int rc = saker_xrcd_close(x->saker);

	if (rc == 0)
		saker_pd_destroy(x->pd);
	return rc;
}

/* Destroys the engine's object, if the object has one of its own. Returns 0 or -errno. */
static int
owned_end(struct vb_owned *o)
{
	const struct vb_pd *pd = vb_container(o, struct vb_pd, owned);
	const struct vb_mr *mr = vb_container(o, struct vb_mr, owned);

	switch (o->kind) {
	case VB_QP:
		return saker_qp_destroy(vb_container(o, struct vb_qp, owned)->saker);
	case VB_AH:
		return saker_ah_destroy(vb_container(o, struct vb_ah, owned)->saker);
	case VB_SRQ:
		return saker_srq_destroy(vb_container(o, struct vb_srq, owned)->saker);
	case VB_XRCD:
		return xrcd_end(vb_container(o, struct vb_xrcd, owned));
	case VB_CQ:
		return saker_cq_destroy(vb_container(o, struct vb_cq, owned)->saker);
	case VB_MW:
		return saker_mw_free(vb_container(o, struct vb_mw, owned)->saker);
	case VB_MR:
		return mr->saker != NULL ? saker_mr_destroy(mr->saker) : 0;
	default:
		return pd->parent == NULL ? saker_pd_destroy(pd->saker) : 0;
	}
}

/* An object that the engine does not destroy stays as it is. */
void
vb_owned_end(struct vb_context *c)
{
	struct vb_owned *o;

	for (unsigned kind = 0; kind < VB_OWNED_KINDS; kind++)
		LIST_FOREACH (o, &c->owned, next)
			if (o->kind == kind && !o->ended)
				o->ended = vb_rc(owned_end(o), "ibv_close_device") == 0;
}

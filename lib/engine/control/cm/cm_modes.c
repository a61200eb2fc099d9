/* SPDX-License-Identifier: BSD-3-Clause */
/* Determines the modes of a Falcon connection from the program's choice and the configuration. */
#include <errno.h>

#include "cm_modes_priv.h"

/* In messages and in rows of the configuration, 0 leaves a mode open. */
_Static_assert(SHM_ORDER_STRONG == 1 + ROF_ORDER_STRONG && SHM_ORDER_WEAK == 1 + ROF_ORDER_WEAK &&
		       SHM_ORDER_NONE == 1 + ROF_ORDER_NONE,
	"ordering modes");
_Static_assert(
	SHM_ERRORS_VERBS == 1 + ROF_ERRORS_VERBS && SHM_ERRORS_COMPLETE == 1 + ROF_ERRORS_COMPLETE,
	"error modes");

/* ---- The check of a program's choice ---- */

int
cm_modes_check(
	struct eng_control *c, struct shm_msg *m, const struct shm_modes *modes, bool responds)
{
	uint16_t known = ROFX_PSP_KEYED | ROFX_PSP(PSP_NO_CRYPTO), mtu = modes->mtu;

	if (modes->ordering > (responds ? SHM_ORDER_ANY : SHM_ORDER_NONE))
		return ctl_refuse(c, m, -EINVAL, "there is no ordering mode %u for this side",
			modes->ordering);
	if (modes->errors > (responds ? SHM_ERRORS_ANY : SHM_ERRORS_COMPLETE))
		return ctl_refuse(
			c, m, -EINVAL, "there is no error mode %u for this side", modes->errors);
	if (modes->flows > 1 && modes->flows != FA_FLOWS_MAX)
		return ctl_refuse(c, m, -EINVAL, "a connection has 1 or %u flows, not %u",
			FA_FLOWS_MAX, modes->flows);
	if (mtu != 0 && (mtu < ROF_MTU_MIN || mtu > ROF_MTU_MAX || (mtu & (mtu - 1)) != 0))
		return ctl_refuse(c, m, -EINVAL,
			"an RDMA MTU is a power of two within %u..%u, not %u", ROF_MTU_MIN,
			ROF_MTU_MAX, mtu);
	if ((modes->psp & ~known) != 0)
		return ctl_refuse(
			c, m, -EINVAL, "there is no PSP version 0x%04x", modes->psp & ~known);
	return 0;
}

/* ---- The choice ---- */

/* Takes from *from the modes that *to leaves open. */
static void
modes_fill(struct shm_modes *to, const struct shm_modes *from)
{
	/* Without order between packets, errors can only complete (6.4). */
	if (to->errors == SHM_ERRORS_CONFIGURED && to->ordering == SHM_ORDER_NONE)
		to->errors = SHM_ERRORS_COMPLETE;
	if (to->ordering == SHM_ORDER_CONFIGURED)
		to->ordering = from->ordering;
	if (to->errors == SHM_ERRORS_CONFIGURED)
		to->errors = from->errors;
	if (to->flows == 0)
		to->flows = from->flows;
	if (to->mtu == 0)
		to->mtu = from->mtu;
	if (to->psp == 0)
		to->psp = from->psp;
}

/* Returns the modes that the configuration has for a peer and a listener's port. */
static struct shm_modes
modes_configured(const struct eng_control *c, const struct sk_addr *remote, uint16_t port)
{
	const struct eng_falcon_config *cfg = &c->cfg->falcon;
	struct shm_modes modes = {0};

	for (unsigned i = 0; i < ENG_MAX_MODES; i++) {
		const struct eng_modes_config *row = &cfg->modes[i];

		if (!row->present || (row->port != 0 && row->port != port) ||
			!sk_in_prefix(remote, &row->addr, row->prefix))
			continue;
		modes = row->modes;
		break;
	}
	modes_fill(&modes, &(struct shm_modes){.ordering = 1 + cfg->ordering,
				   .errors = 1 + cfg->errors,
				   .flows = cfg->flows,
				   .mtu = (uint16_t)cfg->mtu,
				   .psp = cfg->psps});
	return modes;
}

/* Sets the modes of *ask: `chosen` where it sets one, else `configured`. */
static int
modes_set(struct eng_control *c, struct shm_msg *m, struct shm_modes *chosen,
	const struct shm_modes *configured, struct eng_falcon_ask *ask)
{
	uint16_t allowed =
		configured->psp & (c->cfg->falcon.require_psp ? ROFX_PSP_KEYED : UINT16_MAX);

	modes_fill(chosen, configured);
	if ((chosen->psp & allowed) == 0)
		return ctl_refuse(c, m, -EACCES,
			"the configuration allows the PSP versions 0x%04x for this peer, none of "
			"0x%04x",
			allowed, chosen->psp);
	if (chosen->ordering == SHM_ORDER_NONE && chosen->errors == SHM_ERRORS_VERBS)
		return ctl_refuse(c, m, -EINVAL,
			"without order, a request completes in error and the QP continues "
			"(RDMA over Falcon 6.4)");
	ask->ordering = chosen->ordering == SHM_ORDER_ANY ? ROFX_ANY : chosen->ordering - 1;
	ask->errors = chosen->errors == SHM_ERRORS_ANY ? ROFX_ANY : chosen->errors - 1;
	ask->flows = chosen->flows;
	ask->mtu = chosen->mtu;
	ask->psp = chosen->psp & allowed;
	return 0;
}

int
cm_modes_connect(struct eng_control *c, struct shm_msg *m, struct eng_falcon_ask *ask)
{
	const struct shm_cm *cm = &m->body.cm;
	const struct shm_modes configured = modes_configured(c, &cm->remote, cm->rport);
	struct shm_modes chosen = cm->modes;
	int rc = cm_modes_check(c, m, &chosen, false);

	return rc < 0 ? rc : modes_set(c, m, &chosen, &configured, ask);
}

int
cm_modes_accept(struct eng_control *c, const struct cm_request *r, struct shm_msg *m,
	struct eng_falcon_ask *ask)
{
	const struct shm_modes configured = modes_configured(c, &r->tuple.raddr, r->tuple.lport);
	struct shm_modes chosen = m->body.cm.modes;
	int rc = cm_modes_check(c, m, &chosen, true);

	if (rc < 0)
		return rc;
	modes_fill(&chosen, &r->modes);
	return modes_set(c, m, &chosen, &configured, ask);
}

int
cm_modes_modified(struct eng_control *c, const struct shm_modes *modes,
	const struct sk_addr *remote, struct shm_msg *m, struct eng_falcon_ask *ask)
{
	const struct shm_modes configured = modes_configured(c, remote, c->cfg->falcon.port);
	struct shm_modes chosen = *modes;
	int rc = cm_modes_check(c, m, &chosen, false);

	return rc < 0 ? rc : modes_set(c, m, &chosen, &configured, ask);
}

int
cm_modes_move(struct eng_control *c, struct shm_msg *m)
{
	const struct shm_qp_move w = m->body.move;
	struct eng_falcon_ask ask;

	return cm_modes_modified(c, &w.modes, &w.remote, m, &ask);
}

void
cm_modes_describe(const struct eng_falcon_ask *ask, struct shm_modes *out)
{
	*out = (struct shm_modes){.ordering = 1 + ask->ordering,
		.errors = 1 + ask->errors,
		.flows = ask->flows,
		.psp = ask->psp,
		.mtu = ask->mtu};
}

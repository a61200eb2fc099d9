/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of all layers, summed over the stages that keep them; and what an instance holds. */
#include <string.h>

#include <rte_mempool.h>

#include "../base/mem.h"
#include "registry_priv.h"
#include "falcon_priv.h"
#include "half_priv.h"
#include "transport_priv.h"

SK_REASONS_DEFINE(eng, ENG_NONE, ENG_REASONS)

#define MOST_REASONS 128

struct sum {
	uint64_t of[MOST_REASONS];
};

static void
counters_add(struct sum *sum, const struct sk_reason_list *list, const uint64_t *counters)
{
	for (unsigned i = 0; i < list->count && counters != NULL; i++)
		sum->of[i] += __atomic_load_n(&counters[i], __ATOMIC_RELAXED);
}

static void
counters_collect(const struct eng *e, const struct sk_reason_list *list, struct sum *sum)
{
	memset(sum, 0, sizeof(*sum));
	for (unsigned i = 0; i < e->cfg.ntransports; i++) {
		const struct eng_transport *t = e->transports[i];

		if (list == &wire_reasons)
			counters_add(sum, list, t->wire_counters);
		else if (list == &net_reasons)
			counters_add(sum, list, net_counters(t->net));
		else if (list == &tcp_reasons)
			counters_add(sum, list, tcp_stack_counters(t->tcp));
		else if (list == &mpa_reasons)
			counters_add(sum, list, t->mpa_counters);
		else if (list == &fa_reasons && t->falcon != NULL)
			counters_add(sum, list, fa_stack_counters(t->falcon->fa));
		else if (list == &rofx_reasons && t->falcon != NULL)
			counters_add(sum, list, t->falcon->rofx_counters);
		else if (list == &psp_reasons && t->falcon != NULL)
			counters_add(sum, list, t->falcon->psp_counters);
		else if (list == &eng_reasons)
			counters_add(sum, list, t->counters);
	}
	for (unsigned i = 0; i < e->cfg.nstages; i++) {
		const struct eng_stage *s = e->stages[i];

		if (list == &mpa_reasons)
			counters_add(sum, list, s->iw.mpa_counters);
		else if (list == &iw_reasons)
			counters_add(sum, list, s->iw.counters);
		else if (list == &rof_reasons)
			counters_add(sum, list, s->rof.counters);
		else if (list == &eng_reasons)
			counters_add(sum, list, s->counters);
	}
	if (list == &eng_reasons)
		counters_add(sum, list, eng_control_counters(e->control));
}

void
eng_counters(const struct eng *e,
	void (*each)(void *arg, const char *layer, const char *name, enum sk_severity sev,
		const char *help, uint64_t value),
	void *arg)
{
	const struct sk_reason_list *lists[] = {&wire_reasons, &net_reasons, &tcp_reasons,
		&mpa_reasons, &iw_reasons, &psp_reasons, &fa_reasons, &rofx_reasons, &rof_reasons,
		&eng_reasons};
	struct sum sum;

	for (unsigned k = 0; k < SK_ARRAY_LEN(lists); k++) {
		counters_collect(e, lists[k], &sum);
		for (unsigned i = 1; i < lists[k]->count; i++) {
			const struct sk_reason *r = &lists[k]->reasons[i];

			each(arg, lists[k]->layer, r->name, r->severity, r->help, sum.of[i]);
		}
	}
}

static void
count_pool(const struct rte_mempool *mp, uint32_t *all, uint32_t *unused)
{
	*all += mp->size;
	*unused += rte_mempool_avail_count(mp);
}

static void
count_work(const struct eng_stage *s, struct eng_totals *out)
{
	struct eng_work all = s->done, one;

	for (uint32_t i = 0; i < s->nqps; i++) {
		if (s->qps[i] == NULL)
			continue;
		eng_half_of(s->qps[i])->info(s->qps[i], &one);
		eng_work_add(&all, &one);
	}
	out->msgs_in += all.msgs_in;
	out->msgs_out += all.msgs_out;
	out->bytes_in += all.bytes_in;
	out->bytes_out += all.bytes_out;
}

/* Of one idle connection with its QP; a hash of tuples has a key, a signature and two indices for
 * each. */
static size_t
private_bytes(void)
{
	return tcp_conn_size() + sizeof(struct eng_conn) + sizeof(struct ctl_qp) + iw_qp_size() +
	       2 * sizeof(struct tcp_tuple) + 2 * sizeof(void *) + sizeof(uint32_t);
}

/* 16-deep queues with the smallest strides. */
static size_t
shared_bytes(void)
{
	return sizeof(struct shm_qp) + 16u * shm_sqe_stride(4, 64) + 16u * shm_rqe_stride(1);
}

void
eng_totals(const struct eng *e, struct eng_totals *out)
{
	memset(out, 0, sizeof(*out));
	eng_control_totals(e->control, out);
	for (unsigned i = 0; i < e->cfg.ntransports; i++) {
		out->conns += e->transports[i]->nused;
		count_pool(e->transports[i]->rx_pool, &out->rx_mbufs, &out->rx_mbufs_free);
		count_pool(e->transports[i]->tx_pool, &out->tx_mbufs, &out->tx_mbufs_free);
		out->tx_mbufs_free += eng_tx_spares(e->transports[i]);
	}
	for (unsigned i = 0; i < e->cfg.nstages; i++) {
		count_pool(e->stages[i]->store, &out->tx_mbufs, &out->tx_mbufs_free);
		count_work(e->stages[i], out);
	}
	out->private_bytes_per_qp = private_bytes();
	out->shared_bytes_per_qp = shared_bytes();
}

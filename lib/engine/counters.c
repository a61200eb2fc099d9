/* SPDX-License-Identifier: BSD-3-Clause */
/* The counters of all layers, summed over the stages, and the totals of an instance. */
#include <stdio.h>
#include <string.h>

#include "../base/mem.h"
#include "../falcon/psp.h"
#include "../rof/exchange.h"
#include "control/control.h"
#include "stage/stage.h"
#include "transport/transport.h"

#define MOST_REASONS 128

static const struct sk_reason_list *const all_lists[] = {&wire_reasons, &net_reasons, &tcp_reasons,
	&mpa_reasons, &iw_reasons, &psp_reasons, &fa_reasons, &rofx_reasons, &rof_reasons,
	&eng_reasons};

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
	for (unsigned i = 0; i < e->cfg.ntransports; i++)
		counters_add(sum, list, eng_transport_counters(e->transports[i], list));
	for (unsigned i = 0; i < e->cfg.nstages; i++)
		counters_add(sum, list, eng_stage_counters(e->stages[i], list));
	if (list == &eng_reasons)
		counters_add(sum, list, eng_control_counters(e->control));
}

void
eng_counters(const struct eng *e,
	void (*each)(void *arg, const char *layer, const char *name, enum sk_severity sev,
		const char *help, uint64_t value),
	void *arg)
{
	struct sum sum;

	for (unsigned k = 0; k < SK_ARRAY_LEN(all_lists); k++) {
		counters_collect(e, all_lists[k], &sum);
		for (unsigned i = 1; i < all_lists[k]->count; i++) {
			const struct sk_reason *r = &all_lists[k]->reasons[i];

			each(arg, all_lists[k]->layer, r->name, r->severity, r->help, sum.of[i]);
		}
	}
}

/* The stages that have counters, by number: the control stage, transport stages, engine stages. */
static const uint64_t *
stage_list(const struct eng *e, unsigned n, const struct sk_reason_list *list, char name[24])
{
	snprintf(name, 24, "control");
	if (n == 0)
		return list == &eng_reasons ? eng_control_counters(e->control) : NULL;
	n--;
	if (n < e->cfg.ntransports) {
		snprintf(name, 24, "transport%u", n);
		return eng_transport_counters(e->transports[n], list);
	}
	n -= e->cfg.ntransports;
	snprintf(name, 24, "engine%u", n);
	return eng_stage_counters(e->stages[n], list);
}

bool
eng_counter_next(const struct eng *e, struct eng_counter *c)
{
	const uint64_t *counters;

	for (; c->list < SK_ARRAY_LEN(all_lists); c->list++, c->reason = 1) {
		const struct sk_reason_list *list = all_lists[c->list];

		for (; c->reason < list->count; c->reason++, c->stage = 0) {
			c->layer = list->layer;
			c->name = list->reasons[c->reason].name;
			c->help = list->reasons[c->reason].help;
			while (c->stage <= e->cfg.ntransports + e->cfg.nstages) {
				counters = stage_list(e, c->stage++, list, c->stage_name);
				if (counters == NULL)
					continue;
				c->value = __atomic_load_n(&counters[c->reason], __ATOMIC_RELAXED);
				return true;
			}
		}
	}
	return false;
}

bool
eng_latency_next(const struct eng *e, struct eng_latency *l)
{
	static const char *const names[ENG_KINDS] = {
		[ENG_IWARP] = "iwarp", [ENG_FALCON] = "falcon"};
	unsigned stage = l->next / ENG_KINDS, kind = l->next % ENG_KINDS;
	const struct rd_latency *from;

	if (stage >= e->cfg.nstages)
		return false;
	l->next++;
	from = eng_stage_latency(e->stages[stage], kind);
	snprintf(l->stage_name, sizeof(l->stage_name), "engine%u", stage);
	l->transport = names[kind];
	for (unsigned i = 0; i <= RD_LATENCY_BOUNDS; i++)
		l->bucket[i] = __atomic_load_n(&from->bucket[i], __ATOMIC_RELAXED);
	l->sum = __atomic_load_n(&from->sum, __ATOMIC_RELAXED);
	return true;
}

void
eng_falcon_look(const struct eng *e, struct eng_falcon_view *out)
{
	memset(out, 0, sizeof(*out));
	for (unsigned i = 0; i < e->cfg.ntransports; i++)
		eng_transport_falcon(e->transports[i], e->clock(), out);
}

/* Returns the shared bytes of a QP with two queues of 16 entries: sends of one SGE or 24 inline
 * bytes, receives of one SGE. */
static size_t
shared_bytes(void)
{
	return sizeof(struct shm_qp) + 16u * shm_sqe_stride(1, 24) + 16u * shm_rqe_stride(1);
}

void
eng_totals(const struct eng *e, struct eng_totals *out)
{
	memset(out, 0, sizeof(*out));
	eng_control_totals(e->control, out);
	for (unsigned i = 0; i < e->cfg.ntransports; i++)
		eng_transport_totals(e->transports[i], out);
	for (unsigned i = 0; i < e->cfg.nstages; i++)
		eng_stage_totals(e->stages[i], out);
	out->private_bytes_per_qp =
		eng_transport_conn_size() + eng_control_qp_size() + iw_qp_size();
	out->shared_bytes_per_qp = shared_bytes();
}

void
eng_port_look(const struct eng *e, unsigned port, struct eng_port_view *out)
{
	const struct eng_port *p = &e->ports[port];

	*out = (struct eng_port_view){.rx_queues = p->rx_queues,
		.tx_queues = p->tx_queues,
		.interrupts = p->intr != NULL,
		.ip_cksum = p->ip_cksum,
		.tcp_cksum = p->cksum,
		.udp_cksum = p->udp_cksum,
		.multi_seg = p->multi_seg,
		.tso = p->tso,
		.rss = p->rss,
		.id = p->dev.id,
		.removed = eng_device_is_removed(&p->dev)};
}

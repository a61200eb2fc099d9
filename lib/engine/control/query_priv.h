/* SPDX-License-Identifier: BSD-3-Clause */
/* Views of QPs, clients and neighbours for the prompt and telemetry. The control stage requests
 * from the other stages the values that they own. */
#ifndef SAKER_ENGINE_QUERY_PRIV_H
#define SAKER_ENGINE_QUERY_PRIV_H

#include "registry/registry.h"

struct ctl_change;

struct ctl_query {
	TAILQ_ENTRY(ctl_query) next;
	uint32_t refs; /* atomic */
	bool done;     /* atomic */
	uint32_t walk, waiting;
	int n, max;
	enum { VIEW_QPS, VIEW_CLIENTS, VIEW_NEIGHBORS, VIEW_CHANGE, VIEW_EVENTS, VIEW_FAILED } kind;
	unsigned transport; /* VIEW_NEIGHBORS, VIEW_FAILED: index of the transport stage */
	uint32_t qpn;       /* VIEW_EVENTS */
	union {
		struct eng_qp_view *view;             /* [max] */
		struct eng_client_view *clients_view; /* [max] */
		struct net_neighbor_view *neighbors;  /* [max] */
		struct ctl_change *change;            /* VIEW_CHANGE */
		struct eng_flight *flights;           /* [max] */
	};
};

/* Passes a query, which the caller has allocated, to the control stage, and waits for it. The
 * caller releases it with ctl_query_put(), whatever the result is. Any thread. */
bool ctl_query_pass(struct eng_control *c, struct ctl_query *q, int64_t wait_ns);
/* Releases a query. The last one frees it with its view. */
void ctl_query_put(struct ctl_query *q);
/* Marks the oldest query as done. */
void ctl_query_finish(struct eng_control *c, struct ctl_query *query);
/* Returns a message of the query, which counts in query->waiting until `done` is called. */
struct ctl_msg *ctl_query_message(
	struct eng_control *c, struct ctl_query *q, enum eng_ctl_type type, ctl_done done);
/* Returns a sentence if the control stage cannot work with the limits of the configuration. */
const char *ctl_limits_wrong(const struct eng_config *cfg);
/* Continues eng_change(). */
void ctl_change_step(struct eng_control *c, struct ctl_query *query);

/* Adds a query of another thread to the list of queries. */
void ctl_query_start(struct eng_control *c, struct ctl_query *query);
/* Continues the oldest query. Returns whether there was one. */
bool ctl_query_poll(struct eng_control *c);
/* Completes all queries without a result, since the control stage is being destroyed. */
void ctl_queries_drop(struct eng_control *c);

#endif

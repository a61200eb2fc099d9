/* SPDX-License-Identifier: BSD-3-Clause */
/* Views of QPs, clients and neighbours for the prompt and telemetry. The control stage requests
 * from the other stages the values that they own. */
#ifndef SAKER_ENGINE_QUERY_PRIV_H
#define SAKER_ENGINE_QUERY_PRIV_H

#include "registry/registry.h"

struct ctl_query;

/* Adds a query of another thread to the list of queries. */
void ctl_query_start(struct eng_control *c, struct ctl_query *query);
/* Continues the oldest query. Returns whether there was one. */
bool ctl_query_poll(struct eng_control *c);
/* Completes all queries without a result, since the control stage is being destroyed. */
void ctl_queries_drop(struct eng_control *c);

#endif

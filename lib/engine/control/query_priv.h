/* SPDX-License-Identifier: BSD-3-Clause */
/* Views for the prompt and telemetry: what the stages own, they are asked for. */
#ifndef SAKER_ENGINE_QUERY_PRIV_H
#define SAKER_ENGINE_QUERY_PRIV_H

#include "registry/registry.h"

struct ctl_query;

/* The control stage's part. */
void ctl_query_start(struct eng_control *c, struct ctl_query *query);
bool ctl_query_poll(struct eng_control *c);
/* Before the control stage goes: nobody is to wait any more. */
void ctl_queries_drop(struct eng_control *c);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/* The weights, limits and classes of clients, by the rows of the configuration. */
#include <string.h>

#include "client.h"

/* Returns whether a row applies to the client: 1 to the client alone, 2 to its user, 0: neither. */
static unsigned
applies(const struct eng_rates_config *row, const struct ctl_client *cl)
{
	if (!row->present)
		return 0;
	if (row->name[0] != '\0')
		return strncmp(row->name, cl->eng.name, sizeof(cl->eng.name)) == 0 ? 1 : 0;
	/* The tenant of a client that is not flat is its user ID. */
	return !cl->flat && row->uid == cl->tenant ? 2 : 0;
}

/* The first row of each kind that applies to a client, or NULL. */
struct rates_rows {
	const struct eng_rates_config *user, *client;
};

static struct rates_rows
rates_find(const struct eng_control *c, const struct ctl_client *cl)
{
	struct rates_rows found = {NULL, NULL};

	for (unsigned i = 0; i < ENG_MAX_RATES; i++) {
		const struct eng_rates_config *row = &c->cfg->rates[i];
		unsigned which = applies(row, cl);

		if (which == 1 && found.client == NULL)
			found.client = row;
		if (which == 2 && found.user == NULL)
			found.user = row;
	}
	return found;
}

void
ctl_client_rates(const struct eng_control *c, const struct ctl_client *cl, struct eng_rates *client,
	struct eng_rates *user)
{
	struct rates_rows rows = rates_find(c, cl);

	*client = rows.client != NULL ? rows.client->rates : (struct eng_rates){0};
	*user = rows.user != NULL ? rows.user->rates : (struct eng_rates){0};
}

void
ctl_client_class(const struct eng_control *c, struct ctl_client *cl)
{
	struct rates_rows rows = rates_find(c, cl);
	const struct eng_rates_config *const of[] = {rows.user, rows.client};

	cl->class =
		(struct shm_class){.set = SHM_CLASS_TRAFFIC | SHM_CLASS_PRIORITY | SHM_CLASS_FLOW};
	for (unsigned i = 0; i < 2; i++) {
		if (of[i] != NULL && of[i]->traffic_class != 0)
			cl->class.traffic_class = of[i]->traffic_class;
		if (of[i] != NULL && of[i]->priority != 0)
			cl->class.priority = of[i]->priority;
	}
}

struct eng_limits
ctl_limits(struct eng_control *c)
{
	struct eng_limits l;

	pthread_mutex_lock(&c->limits_lock);
	l = c->cfg->limits;
	pthread_mutex_unlock(&c->limits_lock);
	return l;
}

void
ctl_limits_set(struct eng_control *c, const struct eng_limits *next)
{
	struct eng_limits *l = &c->a.cfg->limits;

	pthread_mutex_lock(&c->limits_lock);
	l->client_qps = next->client_qps;
	l->client_cqs = next->client_cqs;
	l->client_mrs = next->client_mrs;
	l->client_mws = next->client_mws;
	l->client_regions = next->client_regions;
	l->client_home_bytes = next->client_home_bytes;
	l->client_mem_bytes = next->client_mem_bytes;
	pthread_mutex_unlock(&c->limits_lock);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The weights and limits of clients, by the rows of the configuration. */
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

void
ctl_client_rates(const struct eng_control *c, struct ctl_client *cl)
{
	unsigned found = 0;

	for (unsigned i = 0; i < ENG_MAX_RATES; i++) {
		const struct eng_rates_config *row = &c->cfg->rates[i];
		unsigned which = applies(row, cl) & ~found;

		if (which == 1)
			cl->eng.rates = row->rates;
		if (which == 2)
			cl->eng.user_rates = row->rates;
		found |= which;
	}
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* The modes of Falcon connections, from the environment. */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>

#include "../../lib/shm/modes.h"
#include "kind_priv.h"
#include "verbs_priv.h"

#define NAME_LEN 32

/* Makes the name of a mode's variable, which is that of the key in saker.ini: SAKER_FALCON_MTU. */
static void
variable_of(const char *key, char name[NAME_LEN])
{
	snprintf(name, NAME_LEN, "SAKER_FALCON_%s", key);
	for (char *p = name; *p != '\0'; p++)
		*p = (char)toupper((unsigned char)*p);
}

int
vb_modes(struct ibv_context *c, struct saker_modes *out)
{
	struct shm_modes modes = {0};

	for (unsigned i = 0; i < SHM_MODES_KEYS && vb_kind_of(c)->has_modes; i++) {
		char name[NAME_LEN], why[CONF_WHY], shown[CONF_SHOWN];
		const char *text;

		variable_of(shm_modes_keys[i], name);
		text = getenv(name);
		if (text != NULL && shm_modes_set(&modes, shm_modes_keys[i], text, why) < 0)
			return vb_fail(EINVAL, "environment variable %s: '%s' %s", name,
				conf_shown(text, shown), why);
	}
	*out = (struct saker_modes){.ordering = modes.ordering,
		.errors = modes.errors,
		.flows = modes.flows,
		.psp = modes.psp,
		.mtu = modes.mtu};
	return 0;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/* Falcon's keys at the prompt. */
#include "identity.h"
#include "saker.h"

void
falcon_reload(struct app *a, const char *arg)
{
	char why[WHY_LEN];

	if (a->s.eng.falcon.tls == NULL)
		printf("There is nothing to read: no key or certificate of Falcon is in use.\n");
	else if (identity_load(&a->s, why) < 0)
		printf("Nothing has changed: %s.\n", why);
	else
		printf("Read again. Connections that exist keep their keys.\n");
}

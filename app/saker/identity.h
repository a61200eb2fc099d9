/* SPDX-License-Identifier: BSD-3-Clause */
/* The keys and certificates with which this host and its Falcon peers prove their identities
 * (doc/falcon-cm.md, section 3): loads those that [falcon] and [peer N] name. */
#ifndef APP_SAKER_IDENTITY_H
#define APP_SAKER_IDENTITY_H

#include "settings.h"

/* Reads all keys and certificates, and sets s->eng.falcon.tls, which stays NULL when none is
 * configured. A further call reads them again for connections that begin later, and changes nothing
 * when it fails. Any thread, one at a time, while loops run. Returns 0, or -EINVAL with one
 * sentence in `why`. */
int identity_load(struct settings *s, char why[WHY_LEN]);
/* Returns whether a key or a certificate is configured. */
bool identity_configured(const struct settings *s);
/* Frees s->eng.falcon.tls. */
void identity_free(struct settings *s);
/* Logs a warning when the exchange is in clear, or the certificate is not valid at the time `now`
 * (seconds since 1970), or not for long. */
void identity_warn(const struct settings *s, int64_t now);

#endif

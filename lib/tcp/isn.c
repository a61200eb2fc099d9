/* SPDX-License-Identifier: BSD-3-Clause */
/* Values that an attacker off the path cannot guess: initial sequence numbers (RFC 6528 3) and
 * timestamp offsets (RFC 7323 7.1). */
#include <string.h>

#include "tcp_priv.h"

_Static_assert(sizeof(struct tcp_tuple) == 40, "hashed as bytes: no padding");

static uint64_t
tuple_hash(const struct tcp_stack *s, const struct tcp_tuple *t)
{
	return sk_siphash(&s->cfg.isn_key, t, sizeof(*t));
}

/* ISN = M + F(tuple, key); M has a tick of 4 us. */
uint32_t
tcp_isn(const struct tcp_stack *s, const struct tcp_tuple *t, uint64_t now)
{
	return (uint32_t)(now / 4000) + (uint32_t)tuple_hash(s, t);
}

uint32_t
tcp_ts_offset(const struct tcp_stack *s, const struct tcp_tuple *t)
{
	return (uint32_t)(tuple_hash(s, t) >> 32);
}

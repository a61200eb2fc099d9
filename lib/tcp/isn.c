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

/* ISN = M + F(tuple, key); M has a tick of 4 us. A connection that sends more than 250 KB/s is
 * ahead of it: the incarnation that follows its TIME-WAIT takes a later ISN (RFC 9293 3.6.1). */
uint32_t
tcp_isn(struct tcp_stack *s, const struct tcp_tuple *t, uint64_t now)
{
	uint32_t isn = (uint32_t)(now / 4000) + (uint32_t)tuple_hash(s, t);
	struct tcp_reopened *old = &s->reopened;

	if (!old->valid || memcmp(&old->tuple, t, sizeof(*t)) != 0)
		return isn;
	old->valid = false;
	return tcp_seq_max(isn, old->snd_nxt + TCP_REOPEN_GAP);
}

uint32_t
tcp_ts_offset(const struct tcp_stack *s, const struct tcp_tuple *t)
{
	return (uint32_t)(tuple_hash(s, t) >> 32);
}

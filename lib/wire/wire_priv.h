/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Parsers of a frame that lies in several buffers: only its first part can be read, while its
 * lengths are checked against the whole frame.
 */
#ifndef SAKER_WIRE_PRIV_H
#define SAKER_WIRE_PRIV_H

#include "wire.h"

#include "../base/be.h"

/* Only `held` of the `len` received bytes can be read at `p`. The functions return what those of
 * wire.h return. */
int wire_ip4_parse_part(struct wire_ip *out, const uint8_t *p, size_t held, size_t len);
int wire_ip6_parse_part(struct wire_ip *out, const uint8_t *p, size_t held, size_t len);
int wire_udp_parse_part(struct wire_udp *out, const uint8_t *p, size_t held, size_t len);

/* Passes over the extension headers from `proto` at `p` (RFC 8200 section 4). Returns the bytes
 * passed and sets *proto to the protocol that follows, or returns -reason. `strict` checks the
 * options. Without it, the packet is a truncated quotation, and a missing header ends the walk. */
int wire_ip6_skip_extensions(uint8_t *proto, const uint8_t *p, size_t held, bool strict);

#endif

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * What the parsers of one frame share: of a frame that lies in several buffers only the first part
 * can be read, while its lengths are judged by the whole.
 */
#ifndef SAKER_WIRE_PRIV_H
#define SAKER_WIRE_PRIV_H

#include "wire.h"

#include "../base/be.h"

/* `held` bytes may be read at `p`, `len` bytes (at least `held`) were received. Else as in wire.h.
 */
int wire_ip4_parse_part(struct wire_ip *out, const uint8_t *p, size_t held, size_t len);
int wire_ip6_parse_part(struct wire_ip *out, const uint8_t *p, size_t held, size_t len);
int wire_udp_parse_part(struct wire_udp *out, const uint8_t *p, size_t held, size_t len);

/* RFC 8200 section 4: passes over the extension headers from `proto` at `p`. Returns the bytes
 * passed, *proto being what follows, or -reason. With `strict` options are judged; without, the
 * packet is a quotation that somebody cut off, and what is missing ends the walk. */
int wire_ip6_skip_extensions(uint8_t *proto, const uint8_t *p, size_t held, bool strict);

#endif

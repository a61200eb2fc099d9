/* SPDX-License-Identifier: BSD-3-Clause */
/* A tunnel: an IP address that several machines of one VLAN share as the outer address of their
 * Falcon packets. It is a port of the switch. */
#ifndef SAKER_GATEWAY_TUNNEL_H
#define SAKER_GATEWAY_TUNNEL_H

#include "switch.h"

struct gw_tunnel;

/* Adds a tunnel to the switch. `mtu` is that of IP packets, in bytes. The tunnel's MAC address is
 * derived from `addr`. Returns NULL on failure, with one sentence in `err`. */
struct gw_tunnel *gw_tunnel_create(struct gw_switch *sw, const struct sk_addr *addr, uint16_t vlan,
	uint32_t mtu, char *err, size_t errlen);
/* Removes the tunnel's port from the switch. No other port has the tunnel's address any more. */
void gw_tunnel_unplug(struct gw_tunnel *t);
/* Frees an unplugged tunnel after a turn has passed, or when no thread polls. NULL is allowed. */
void gw_tunnel_destroy(struct gw_tunnel *t);
const struct sk_addr *gw_tunnel_addr(const struct gw_tunnel *t);

#endif

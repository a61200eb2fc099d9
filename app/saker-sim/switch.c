/* SPDX-License-Identifier: BSD-3-Clause */
/* A switch: a table of routes, a hash that selects among ports of equal cost, and the queues of its
 * ports, which are links. It forwards whole packets, without a delay of its own. */
#include <stdlib.h>
#include <string.h>

#include "net.h"

int
sim_switch_port(const struct sim_switch *s, const struct sim_packet *p)
{
	const struct sim_route *r;
	uint64_t h;

	if (p->dst >= s->nhosts || s->routes[p->dst].count == 0)
		return -1;
	r = &s->routes[p->dst];
	if (r->count == 1)
		return r->first;
	h = sim_mix(s->salt ^ sim_mix((uint64_t)p->src << 32 | p->dst) ^ p->entropy);
	return (int)(r->first + h % r->count);
}

static void
forward(struct sim_node *self, struct sim_packet *p, sim_time now)
{
	struct sim_switch *s = (struct sim_switch *)self;
	int port = sim_switch_port(s, p);

	if (port < 0) {
		s->no_route++;
		sim_packet_free(s->memory, p);
	} else if (p->ttl <= 1) {
		s->expired++;
		sim_packet_free(s->memory, p);
	} else {
		p->ttl--;
		sim_link_send(&s->ports[port], p, now);
	}
}

void
sim_switch_init(struct sim_switch *s, unsigned nports, unsigned nhosts, struct sim_memory *memory,
	uint64_t salt)
{
	memset(s, 0, sizeof(*s));
	s->node.receive = forward;
	s->ports = sim_calloc(nports, sizeof(*s->ports));
	s->nports = nports;
	s->routes = sim_calloc(nhosts, sizeof(*s->routes));
	s->nhosts = nhosts;
	s->memory = memory;
	s->salt = sim_mix(salt + 1);
}

void
sim_switch_free(struct sim_switch *s)
{
	free(s->ports);
	free(s->routes);
	memset(s, 0, sizeof(*s));
}

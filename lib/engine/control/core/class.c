/* SPDX-License-Identifier: BSD-3-Clause */
/* The class of packets: DSCP, priority, IPv6 flow label. The first of these that sets a member
 * determines it: the client's command, the QP, the listener, the configuration of the client. */
#include <errno.h>

#include "core.h"

#define CLASS_ALL (SHM_CLASS_TRAFFIC | SHM_CLASS_PRIORITY | SHM_CLASS_FLOW)
#define FLOW_MAX  0xfffff

int
ctl_class_check(struct eng_control *c, struct shm_msg *m, const struct shm_class *k)
{
	if ((k->set & ~CLASS_ALL) != 0)
		return ctl_refuse(
			c, m, -EINVAL, "a class has no members 0x%02x", k->set & ~CLASS_ALL);
	if ((k->set & SHM_CLASS_PRIORITY) != 0 && k->priority >= ENG_PRIORITIES)
		return ctl_refuse(c, m, -EINVAL, "a priority (service level) is 0 to %u, not %u",
			ENG_PRIORITIES - 1, k->priority);
	if ((k->set & SHM_CLASS_FLOW) != 0 && k->flow_label > FLOW_MAX)
		return ctl_refuse(c, m, -EINVAL,
			"a flow label has 20 bits (0 to 0x%x), and 0x%x does not fit", FLOW_MAX,
			k->flow_label);
	return 0;
}

void
ctl_class_fill(struct shm_class *to, const struct shm_class *from)
{
	uint8_t open = from->set & ~to->set;

	if ((open & SHM_CLASS_TRAFFIC) != 0)
		to->traffic_class = from->traffic_class;
	if ((open & SHM_CLASS_PRIORITY) != 0)
		to->priority = from->priority;
	if ((open & SHM_CLASS_FLOW) != 0)
		to->flow_label = from->flow_label;
	to->set |= open;
}

struct net_class
ctl_class_net(const struct eng_control *c, const struct shm_class *k)
{
	return (struct net_class){.dscp = k->traffic_class >> 2,
		.pcp = c->cfg->vlan_pcp[k->priority % ENG_PRIORITIES],
		.flow = k->flow_label};
}

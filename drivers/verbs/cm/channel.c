/* SPDX-License-Identifier: BSD-3-Clause */
/* Event channels: a queue of events behind a descriptor on which programs sleep. */
#include <stdlib.h>

#include "cm_priv.h"

VB_EXPORT struct rdma_event_channel *
rdma_create_event_channel(void)
{
	/* Programs detect here that there is no RDMA device; the call fails without a saker. */
	struct vb_attachment *a = vb_attach();
	struct cm_channel *c;
	int err;

	if (a == NULL)
		return NULL;
	err = vb_cm_handler_start(a);
	vb_attachment_release(a);
	c = err == 0 ? calloc(1, sizeof(*c)) : NULL;
	if (err == 0)
		err = c != NULL ? vb_waitq_init(&c->queue, NULL) : ENOMEM;
	if (err != 0) {
		free(c);
		errno = err;
		return NULL;
	}
	c->epoch = vb_cm_epoch();
	c->channel.fd = c->queue.event;
	return &c->channel;
}

VB_EXPORT void
rdma_destroy_event_channel(struct rdma_event_channel *channel)
{
	struct cm_channel *c = vb_cm_channel_of(channel);

	vb_waitq_fini(&c->queue);
	free(c);
}

VB_EXPORT int
rdma_get_cm_event(struct rdma_event_channel *channel, struct rdma_cm_event **event)
{
	struct vb_wait_item *item;
	struct cm_channel *c;

	if (event == NULL || channel == NULL)
		return vb_cm_end(EINVAL);
	c = vb_cm_channel_of(channel);
	if (c->epoch != vb_cm_epoch())
		return vb_cm_end(ENODEV);
	item = vb_waitq_get(&c->queue);
	if (item == NULL)
		return -1;
	*event = &vb_container(item, struct cm_event, item)->ev;
	return 0;
}

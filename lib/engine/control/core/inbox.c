/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages between the control stage and other threads, in lists without a lock. */
#include <stdlib.h>

#include "../../../base/wake.h"
#include "core.h"

void
ctl_inbox_push(struct eng_control *c, struct ctl_inbox *in)
{
	in->next = __atomic_load_n(&c->inbox, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		&c->inbox, &in->next, in, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	if (c->a.wake != NULL)
		c->a.wake(c->a.wake_arg, c->cfg->control_loop);
}

/* Moves new messages to the end of the control stage's private queue. In the shared list the newest
 * message is the first one. */
static void
inbox_take(struct eng_control *c)
{
	struct ctl_inbox *in, *next, *first = NULL;

	if (__atomic_load_n(&c->inbox, __ATOMIC_RELAXED) == NULL)
		return;
	for (in = __atomic_exchange_n(&c->inbox, NULL, __ATOMIC_ACQUIRE); in != NULL; in = next) {
		next = in->next;
		in->next = first;
		first = in;
	}
	*c->taken_end = first;
	while (*c->taken_end != NULL)
		c->taken_end = &(*c->taken_end)->next;
}

struct ctl_inbox *
ctl_inbox_pop(struct eng_control *c)
{
	struct ctl_inbox *in;

	inbox_take(c);
	in = c->taken;
	if (in == NULL)
		return NULL;
	c->taken = in->next;
	if (c->taken == NULL)
		c->taken_end = &c->taken;
	return in;
}

bool
ctl_inbox_waits(const struct eng_control *c)
{
	return c->taken != NULL || __atomic_load_n(&c->inbox, __ATOMIC_ACQUIRE) != NULL;
}

bool
ctl_inbox_poll(struct eng_control *c)
{
	struct ctl_inbox *in;
	unsigned n;

	for (n = 0; n < CTL_INBOX && ctl_has_reserve(c) && (in = ctl_inbox_pop(c)) != NULL; n++) {
		c->inbox_handlers[in->kind](c, in);
		free(in);
	}
	return n != 0;
}

struct ctl_client *
ctl_client_of(const struct eng_control *c, uint32_t id)
{
	struct ctl_client *cl = c->clients[CTL_ID_NUMBER(id) % c->cfg->limits.clients];

	return cl != NULL && cl->id == id ? cl : NULL;
}

void
ctl_wake_socket(struct eng_control *c)
{
	int fd = __atomic_load_n(&c->sock_fd, __ATOMIC_ACQUIRE);

	if (fd >= 0)
		sk_wake(fd);
}

void
ctl_gone_push(struct eng_control *c, struct ctl_client *cl)
{
	cl->next_gone = __atomic_load_n(&c->gone, __ATOMIC_RELAXED);
	while (!__atomic_compare_exchange_n(
		&c->gone, &cl->next_gone, cl, true, __ATOMIC_RELEASE, __ATOMIC_RELAXED))
		;
	ctl_wake_socket(c);
}

/* SPDX-License-Identifier: BSD-3-Clause */
#include "../../support/dial.h"
#include "served.h"

#include <criterion/criterion.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "../../../lib/engine/control/core/core.h"

static void *
served_run(void *arg)
{
	struct served *d = arg;

	while (!__atomic_load_n(&d->stop, __ATOMIC_ACQUIRE)) {
		script_turn(d->s);
		/* No stage handles doorbells here: the control stage polls all mailboxes. */
		d->s->now += 10 * 1000 * 1000;
		usleep(50);
	}
	return NULL;
}

void
served_start(struct served *d)
{
	char err[256];

	d->s = script_new(NULL);
	d->stop = false;
	snprintf(d->path, sizeof(d->path), "/tmp/saker-test-%d.sock", getpid());
	unlink(d->path);
	cr_assert_eq(
		eng_control_socket_start(d->s->control, d->path, err, sizeof(err)), 0, "%s", err);
	cr_assert_eq(pthread_create(&d->thread, NULL, served_run, d), 0);
}

void
served_end(struct served *d)
{
	const uint32_t *regions = &d->s->control->share[CTL_POOL_REGION].held;
	struct eng_totals t = {0};

	for (int i = 0; i < 20000; i++) {
		eng_control_totals(d->s->control, &t);
		if (t.clients == 0 && __atomic_load_n(regions, __ATOMIC_RELAXED) == 0)
			break;
		usleep(1000);
	}
	cr_assert_eq(t.clients + t.regions + t.mrs, 0);
	__atomic_store_n(&d->stop, true, __ATOMIC_RELEASE);
	pthread_join(d->thread, NULL);
	eng_control_socket_stop(d->s->control);
	cr_assert_eq(access(d->path, F_OK), -1);
	script_free(d->s);
}

int
served_dial(const struct served *d)
{
	return dial(d->path, SOCK_SEQPACKET);
}

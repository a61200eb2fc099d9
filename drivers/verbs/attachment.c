/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The attachments of the process. It has one at a time. When the saker has gone, the contexts that
 * were opened before keep the old attachment until the program has closed them, and the next call
 * that needs a saker opens a new one. A child after fork(2) uses no object of its parent: the
 * contexts that it inherited are dead, and the first call that needs a saker opens an attachment of
 * the child's own.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../lib/client/path.h"
#include "process_priv.h"
#include "verbs_priv.h"

static struct {
	pthread_mutex_t lock;
	struct vb_attachment *now; /* the attachment that new contexts get, or NULL */
} at = {.lock = PTHREAD_MUTEX_INITIALIZER};

int
vb_fail(int err, const char *fmt, ...)
{
	va_list ap;

	if (getenv("SAKER_VERBOSE") != NULL) {
		int state = vb_cancel_off(); /* callers hold locks */
		char line[512];

		va_start(ap, fmt);
		vsnprintf(line, sizeof(line), fmt, ap);
		va_end(ap);
		fprintf(stderr, "saker-verbs: %s\n", line);
		vb_cancel_back(state);
	}
	errno = err;
	return err;
}

int
vb_rc(int rc, const char *what)
{
	if (rc >= 0)
		return 0;
	return vb_fail(-rc, "%s: %s", what, saker_error());
}

static void
fork_prepare(void)
{
	vb_dispatch_fork_prepare();
	vb_contexts_fork_prepare();
	vb_objects_fork_prepare();
	vb_devices_fork_prepare();
	pthread_mutex_lock(&at.lock);
}

static void
fork_parent(void)
{
	pthread_mutex_unlock(&at.lock);
	vb_devices_fork_parent();
	vb_objects_fork_parent();
	vb_contexts_fork_parent();
	vb_dispatch_fork_parent();
}

static void
fork_child(void)
{
	vb_dispatch_fork_child(at.now);
	vb_contexts_fork_child();
	vb_objects_fork_child();
	vb_devices_fork_child();
	at.now = NULL;
	pthread_mutex_init(&at.lock, NULL);
}

static void
attachment_watch_forks(void)
{
	pthread_atfork(fork_prepare, fork_parent, fork_child);
}

struct vb_attachment *
vb_attachment_now(void)
{
	struct vb_attachment *a;

	pthread_mutex_lock(&at.lock);
	a = at.now;
	if (a != NULL)
		a->refs++;
	pthread_mutex_unlock(&at.lock);
	return a;
}

void
vb_attachment_hold(struct vb_attachment *a)
{
	pthread_mutex_lock(&at.lock);
	a->refs++;
	pthread_mutex_unlock(&at.lock);
}

/* The structure stays, because pointers to its description of the device may be in use. */
void
vb_attachment_release(struct vb_attachment *a)
{
	bool last;

	pthread_mutex_lock(&at.lock);
	last = --a->refs == 0;
	pthread_mutex_unlock(&at.lock);
	if (last)
		saker_close(a->saker);
}

/* Opens an attachment. Call with the lock held. Returns NULL, and -errno in *rc. */
static struct vb_attachment *
attachment_open(int *rc)
{
	struct vb_attachment *a = calloc(1, sizeof(*a));

	if (a == NULL) {
		*rc = -ENOMEM;
		return NULL;
	}
	cl_wait_for_events(); /* async_fd shows libsaker's descriptor, see context.c */
	*rc = saker_open(NULL, program_invocation_short_name, &a->saker);
	if (*rc == 0) {
		*rc = saker_device(a->saker, &a->device);
		if (*rc < 0)
			saker_close(a->saker);
	}
	if (*rc == 0)
		return a;
	free(a);
	return NULL;
}

/* Returns a held attachment that replaces `old`, or the one with which another thread has replaced
 * it. */
static struct vb_attachment *
attachment_renew(struct vb_attachment *old)
{
	struct vb_attachment *a;
	bool replaced = false;
	int rc = 0, state = vb_cancel_off();

	pthread_mutex_lock(&at.lock);
	if (at.now == old) {
		a = attachment_open(&rc);
		replaced = a != NULL;
	} else {
		a = at.now;
	}
	if (replaced) {
		a->refs = 1; /* at.now */
		at.now = a;
	}
	if (a != NULL)
		a->refs++;
	pthread_mutex_unlock(&at.lock);
	if (replaced && old != NULL)
		vb_attachment_release(old);
	vb_rc(rc, "attaching to a saker");
	vb_cancel_back(state);
	return a;
}

struct vb_attachment *
vb_attach(void)
{
	static pthread_once_t once = PTHREAD_ONCE_INIT;
	struct vb_attachment *old, *a;

	/* Before the first lock is taken, so that no child finds one that was held. */
	pthread_once(&once, attachment_watch_forks);
	old = vb_attachment_now();
	if (old != NULL && !saker_gone(old->saker))
		return old;
	/* Its contexts get their event before anything reaches the next saker. */
	if (old != NULL)
		vb_dispatch(old);
	a = attachment_renew(old);
	if (old != NULL)
		vb_attachment_release(old);
	return a;
}

const struct saker_device *
vb_saker_device(void)
{
	struct vb_attachment *a = vb_attach();

	if (a == NULL)
		return NULL;
	vb_attachment_release(a);
	return &a->device;
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The process's attachment to a saker. A child after fork(2) uses no object of its parent: the
 * contexts that it inherited are dead, and the first call that needs a saker opens an attachment of
 * the child's own.
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "verbs_priv.h"
#include "process_priv.h"

static struct {
	pthread_mutex_t lock;
	struct saker *saker;
	struct saker_device device;
	bool forks_seen; /* the handlers of fork(2) are registered */
} at = {.lock = PTHREAD_MUTEX_INITIALIZER};

int
vb_fail(int err, const char *fmt, ...)
{
	va_list ap;

	if (getenv("SAKER_VERBOSE") != NULL) {
		char line[512];

		va_start(ap, fmt);
		vsnprintf(line, sizeof(line), fmt, ap);
		va_end(ap);
		fprintf(stderr, "saker-verbs: %s\n", line);
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
	pthread_mutex_lock(&at.lock);
}

static void
fork_parent(void)
{
	pthread_mutex_unlock(&at.lock);
	vb_contexts_fork_parent();
	vb_dispatch_fork_parent();
}

static void
fork_child(void)
{
	vb_dispatch_fork_child();
	vb_contexts_fork_child();
	at.saker = NULL;
	pthread_mutex_init(&at.lock, NULL);
}

struct saker *
vb_saker(void)
{
	struct saker *s;
	int rc = 0;

	pthread_mutex_lock(&at.lock);
	if (!at.forks_seen)
		at.forks_seen = pthread_atfork(fork_prepare, fork_parent, fork_child) == 0;
	if (at.saker == NULL) {
		rc = saker_open(NULL, program_invocation_short_name, &at.saker);
		if (rc == 0)
			rc = saker_device(at.saker, &at.device);
	}
	s = at.saker;
	pthread_mutex_unlock(&at.lock);
	vb_rc(rc, "attaching to a saker");
	return s;
}

const struct saker_device *
vb_saker_device(void)
{
	return vb_saker() != NULL ? &at.device : NULL;
}

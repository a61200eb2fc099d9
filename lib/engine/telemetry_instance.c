/* SPDX-License-Identifier: BSD-3-Clause */
/* The instance that telemetry commands report. DPDK cannot unregister a command, so the commands
 * outlive the instance. */
#include "telemetry_priv.h"

#include <pthread.h>
#include <stddef.h>

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct eng *instance;

void
eng_telemetry_remember(struct eng *e)
{
	pthread_mutex_lock(&lock);
	if (instance == NULL)
		instance = e;
	pthread_mutex_unlock(&lock);
}

void
eng_telemetry_forget(const struct eng *e)
{
	pthread_mutex_lock(&lock);
	if (instance == e)
		instance = NULL;
	pthread_mutex_unlock(&lock);
}

struct eng *
eng_telemetry_hold(void)
{
	struct eng *e;

	pthread_mutex_lock(&lock);
	e = instance;
	if (e == NULL)
		pthread_mutex_unlock(&lock);
	return e;
}

void
eng_telemetry_release(void)
{
	pthread_mutex_unlock(&lock);
}

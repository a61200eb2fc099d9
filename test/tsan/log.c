/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Threads that log at the same time through the queue, for ThreadSanitizer. Exits with status 1 if
 * a line is damaged, or neither written nor counted as lost.
 */
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "../../lib/base/log_queue.h"

#define THREADS 4
#define EACH    20000u

static unsigned written, lost, damaged;

static void
sink(enum sk_log_level level, const char *line)
{
	unsigned thread, number, check;

	if (sscanf(line, "%u messages are lost", &number) == 1 && level == SK_LOG_WARNING)
		lost += number;
	else if (sscanf(line, "line %u %u %u", &thread, &number, &check) == 3)
		written++, damaged += check != thread * number;
	else
		damaged++;
}

static void *
log_lines(void *arg)
{
	for (unsigned i = 0, thread = *(unsigned *)arg; i < EACH; i++)
		sk_log(SK_LOG_INFO, "line %u %u %u", thread, i, thread * i);
	return NULL;
}

int
main(void)
{
	pthread_t thread[THREADS];
	unsigned number[THREADS];

	if (sk_log_queue_start(sink) < 0)
		return 1;
	for (unsigned i = 0; i < THREADS; i++) {
		number[i] = i + 1;
		pthread_create(&thread[i], NULL, log_lines, &number[i]);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	sk_log_queue_stop();
	printf("%u lines written, %u lost, %u damaged\n", written, lost, damaged);
	return damaged > 0 || written == 0 || written + lost != THREADS * EACH;
}

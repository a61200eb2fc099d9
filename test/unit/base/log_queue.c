/* SPDX-License-Identifier: BSD-3-Clause */
/* Messages on their way to a sink that blocks. */
#include <criterion/criterion.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../../../lib/base/log_queue.h"

#define THREADS 4
#define EACH    20000

static pthread_mutex_t gate = PTHREAD_MUTEX_INITIALIZER;
static unsigned written, reported, next[THREADS];
static char last[SK_LOG_LINE];

/* Waits at the gate, and checks that each thread's lines come in their order. */
static void
sink(enum sk_log_level level, const char *line)
{
	unsigned thread, number;

	pthread_mutex_lock(&gate);
	pthread_mutex_unlock(&gate);
	if (sscanf(line, "%u messages are lost", &number) == 1 && strstr(line, "lost") != NULL) {
		cr_assert_eq(level, SK_LOG_WARNING);
		reported += number;
		return;
	}
	snprintf(last, sizeof(last), "%s", line);
	written++;
	if (sscanf(line, "thread %u line %u", &thread, &number) != 2)
		return;
	cr_assert_geq(number, next[thread]);
	next[thread] = number + 1;
}

Test(base_log_queue, no_thread_waits_for_the_sink_and_lost_lines_are_counted)
{
	pthread_mutex_lock(&gate);
	cr_assert_eq(sk_log_queue_start(sink), 0);
	for (unsigned i = 0; i < 10 * SK_LOG_QUEUE; i++)
		sk_log(SK_LOG_INFO, "thread 0 line %u", i);
	pthread_mutex_unlock(&gate);
	sk_log_queue_stop();
	cr_assert_eq(written, SK_LOG_QUEUE);
	cr_assert_eq(reported, 9 * SK_LOG_QUEUE);
}

Test(base_log_queue, lines_come_whole_and_before_the_stop)
{
	char lengthy[2 * SK_LOG_LINE];

	memset(lengthy, 'x', sizeof(lengthy) - 1);
	lengthy[sizeof(lengthy) - 1] = '\0';
	for (unsigned i = 0; i < 3; i++) {
		cr_assert_eq(sk_log_queue_start(sink), 0);
		sk_log(SK_LOG_ERR, "%s", lengthy);
		sk_log_queue_stop();
		cr_assert_eq(written, i + 1);
		cr_assert_eq(strlen(last), SK_LOG_LINE - 1);
	}
	sk_log(SK_LOG_ERR, "directly");
	cr_assert_str_eq(last, "directly");
}

static void *
log_lines(void *arg)
{
	for (unsigned i = 0; i < EACH; i++)
		sk_log(SK_LOG_INFO, "thread %u line %u", *(unsigned *)arg, i);
	return NULL;
}

Test(base_log_queue, lines_of_several_threads_are_written_or_counted)
{
	pthread_t thread[THREADS];
	unsigned number[THREADS];

	cr_assert_eq(sk_log_queue_start(sink), 0);
	for (unsigned i = 0; i < THREADS; i++) {
		number[i] = i;
		cr_assert_eq(pthread_create(&thread[i], NULL, log_lines, &number[i]), 0);
	}
	for (unsigned i = 0; i < THREADS; i++)
		pthread_join(thread[i], NULL);
	sk_log_queue_stop();
	cr_assert_eq(written + reported, THREADS * EACH);
	cr_assert_gt(written, 0);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * Runs loops on lcores: loop 0 on the main lcore, the others on workers in EAL's order. The
 * prompt, the control socket, signals and periodic statistics run on a control thread, so that
 * saker needs one lcore only.
 */
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <semaphore.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <rte_launch.h>
#include <rte_lcore.h>

#include "../../lib/base/mem.h"
#include "saker.h"

#define SECOND 1000000000ull

struct worker {
	struct eng *e;
	unsigned loop;
};

static struct {
	bool quit;    /* atomic */
	bool running; /* atomic */
	bool reload;  /* atomic */
	sem_t go;     /* wakes the main lcore while the loops are stopped */
	int wake[2];  /* pipe: wakes the control thread, also from a signal handler */
	/* Of the control thread: 0, or -errno with the sentence with which run_loops() fails. */
	int rc;
	char why[WHY_LEN];
	unsigned lcore[ENG_MAX_LCORES];
	struct worker worker[ENG_MAX_LCORES];
} state;

bool
run_running(void)
{
	return __atomic_load_n(&state.running, __ATOMIC_ACQUIRE);
}

void
run_quit(void)
{
	__atomic_store_n(&state.quit, true, __ATOMIC_RELEASE);
	/* The write fails if the pipe is full, which wakes the thread, too. */
	if (write(state.wake[1], "q", 1) < 0)
		return;
}

static void
on_signal(int number)
{
	int saved = errno;

	run_quit();
	errno = saved;
}

static void
on_hangup(int number)
{
	int saved = errno;

	__atomic_store_n(&state.reload, true, __ATOMIC_RELEASE);
	/* The write fails if the pipe is full, which wakes the thread, too. */
	if (write(state.wake[1], "h", 1) < 0)
		errno = saved;
	errno = saved;
}

int
run_stop(struct app *a)
{
	if (!run_running())
		return -EALREADY;
	eng_stop(a->e);
	/* The main lcore clears `running` after all loops have returned. */
	while (run_running())
		usleep(1000);
	return 0;
}

int
run_start(struct app *a)
{
	if (run_running())
		return -EALREADY;
	sem_post(&state.go);
	while (!run_running() && !__atomic_load_n(&state.quit, __ATOMIC_ACQUIRE))
		usleep(1000);
	return 0;
}

static int
worker_main(void *arg)
{
	struct worker *w = arg;
	int rc;

	priority_enter();
	rc = eng_run(w->e, w->loop);
	priority_leave();
	return rc;
}

/* Runs all loops until eng_stop(). */
static void
run_until_stop(struct app *a)
{
	struct worker first = {.e = a->e, .loop = 0};
	unsigned n = a->s.eng.nloops;

	eng_restart(a->e);
	for (unsigned k = 1; k < n; k++) {
		state.worker[k] = (struct worker){.e = a->e, .loop = k};
		rte_eal_remote_launch(worker_main, &state.worker[k], state.lcore[k]);
	}
	__atomic_store_n(&state.running, true, __ATOMIC_RELEASE);
	/* A run_quit() before this point has not stopped any loop. */
	if (!__atomic_load_n(&state.quit, __ATOMIC_ACQUIRE))
		worker_main(&first);
	else
		eng_stop(a->e);
	for (unsigned k = 1; k < n; k++)
		rte_eal_wait_lcore(state.lcore[k]);
	__atomic_store_n(&state.running, false, __ATOMIC_RELEASE);
}

/* Runs once per second; `second` counts the calls. */
static void
every_second(struct app *a, uint64_t second)
{
	capture_look(a);
	eng_ports_look(a->e);
	gateway_look(a);
	if (a->s.stats_period != 0 && second % a->s.stats_period == 0)
		stats_period(a);
}

static void
wake_drain(void)
{
	char bytes[64];

	while (read(state.wake[0], bytes, sizeof(bytes)) == sizeof(bytes))
		continue;
}

static void
control_turn(struct app *a, bool *input, uint64_t *due)
{
	/* poll() ignores an entry whose descriptor is below 0. */
	struct pollfd p[4] = {{state.wake[0], POLLIN, 0},
		{a->control != NULL ? cmd_server_fd(a->control) : -1, POLLIN, 0},
		{*input ? STDIN_FILENO : -1, POLLIN, 0},
		{a->metrics != NULL ? cmd_server_fd(a->metrics) : -1, POLLIN, 0}};
	uint64_t now = eng_clock();
	int n = 0;

	if (now < *due)
		n = poll(p, 4, (int)((*due - now) / 1000000) + 1);
	if (n > 0 && p[0].revents != 0)
		wake_drain();
	if (__atomic_exchange_n(&state.reload, false, __ATOMIC_ACQ_REL))
		change_on_signal(a);
	if (a->control != NULL)
		cmd_server_turn(a->control, eng_clock());
	if (a->metrics != NULL)
		cmd_server_turn(a->metrics, eng_clock());
	if (eng_clock() >= *due) {
		every_second(a, *due / SECOND);
		/* After a pause the seconds that passed are not made up for: what the calls count
		 * as seconds must be seconds. */
		*due = SK_MAX(*due + SECOND, eng_clock());
	}
	if (n > 0 && p[2].revents != 0 && !prompt_read()) {
		*input = false;
		run_quit();
	}
}

/* Executes the file of commands, and opens the prompt. */
static int
input_begin(struct app *a, char why[WHY_LEN])
{
	const struct cmd_table *table = commands_table(a);
	int rc = 0;

	if (a->s.cmdline_file[0] != '\0')
		rc = prompt_file(table, a->s.cmdline_file, why);
	if (rc == 0 && a->s.interactive)
		rc = prompt_open(table, why);
	return rc;
}

static void *
control_main(void *arg)
{
	struct app *a = arg;
	bool input = a->s.interactive;
	uint64_t due = eng_clock() + SECOND;

	while (!run_running() && !__atomic_load_n(&state.quit, __ATOMIC_ACQUIRE))
		usleep(1000);
	notify_manager("READY=1\nSTATUS=Running");
	state.rc = input_begin(a, state.why);
	if (state.rc < 0) {
		input = false;
		run_quit();
	}
	while (!__atomic_load_n(&state.quit, __ATOMIC_ACQUIRE))
		control_turn(a, &input, &due);
	prompt_close();
	/* Either the loops run, or the main lcore waits for a start. */
	eng_stop(a->e);
	sem_post(&state.go);
	return NULL;
}

static int
lcores_take(const struct app *a, char why[WHY_LEN])
{
	unsigned n = 0, lcore;

	state.lcore[n++] = rte_get_main_lcore();
	RTE_LCORE_FOREACH_WORKER(lcore)
	if (n < ENG_MAX_LCORES)
		state.lcore[n++] = lcore;
	if (a->s.eng.nloops <= n)
		return 0;
	return settings_refuse(why, "%u loops require %u lcores, but EAL has %u (-l or --lcores)",
		a->s.eng.nloops, a->s.eng.nloops, n);
}

static void
signals_catch(void)
{
	struct sigaction sa = {.sa_handler = on_signal};

	sigaction(SIGINT, &sa, NULL);
	sigaction(SIGTERM, &sa, NULL);
	sa.sa_handler = on_hangup;
	sigaction(SIGHUP, &sa, NULL);
	/* saker must not end when the reader of its output does. */
	sa.sa_handler = SIG_IGN;
	sigaction(SIGPIPE, &sa, NULL);
}

int
run_loops(struct app *a, char why[WHY_LEN])
{
	pthread_t control;
	int rc = lcores_take(a, why);

	if (rc < 0)
		return rc;
	if (pipe2(state.wake, O_CLOEXEC | O_NONBLOCK) < 0 || sem_init(&state.go, 0, 0) < 0) {
		settings_refuse(why, "the wake-up pipe cannot be created: %s", strerror(errno));
		return -errno;
	}
	signals_catch();
	rc = rte_ctrl_thread_create(&control, "saker-prompt", NULL, control_main, a);
	if (rc < 0) {
		settings_refuse(why, "the control thread cannot be created: %s", strerror(-rc));
		return rc;
	}
	while (!__atomic_load_n(&state.quit, __ATOMIC_ACQUIRE)) {
		run_until_stop(a);
		while (!__atomic_load_n(&state.quit, __ATOMIC_ACQUIRE) && sem_wait(&state.go) < 0)
			continue;
	}
	notify_manager("STOPPING=1");
	pthread_join(control, NULL);
	snprintf(why, WHY_LEN, "%s", state.why);
	return state.rc;
}

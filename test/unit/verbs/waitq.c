/* SPDX-License-Identifier: BSD-3-Clause */
/* Queues of items behind a descriptor: the behaviour of a channel's fd. */
#include <criterion/criterion.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "../../../drivers/verbs/verbs_priv.h"

static bool
readable(int fd)
{
	struct pollfd p = {.fd = fd, .events = POLLIN};

	return poll(&p, 1, 0) == 1;
}

Test(waitq, is_readable_only_while_something_waits)
{
	struct vb_wait_item a, b;
	struct vb_waitq q;

	cr_assert_eq(vb_waitq_init(&q, NULL), 0);
	cr_assert(!readable(q.event));
	cr_assert_null(vb_waitq_pop(&q));
	vb_waitq_push(&q, &a);
	vb_waitq_push(&q, &b);
	cr_assert(readable(q.event));
	cr_assert_eq(vb_waitq_pop(&q), &a);
	cr_assert(readable(q.event), "one item still waits");
	cr_assert_eq(vb_waitq_pop(&q), &b);
	cr_assert(!readable(q.event));
	vb_waitq_fini(&q);
}

Test(waitq, returns_EAGAIN_where_the_program_set_O_NONBLOCK)
{
	struct vb_waitq q;

	vb_waitq_init(&q, NULL);
	fcntl(q.event, F_SETFL, fcntl(q.event, F_GETFL) | O_NONBLOCK);
	errno = 0;
	cr_assert_null(vb_waitq_get(&q));
	cr_assert_eq(errno, EAGAIN);
	vb_waitq_fini(&q);
}

static void *
push_later(void *arg)
{
	static struct vb_wait_item item;

	usleep(20000);
	vb_waitq_push(arg, &item);
	return &item;
}

Test(waitq, blocks_until_something_comes, .timeout = 30)
{
	struct vb_wait_item *got;
	struct vb_waitq q;
	pthread_t t;
	void *pushed;

	vb_waitq_init(&q, NULL);
	pthread_create(&t, NULL, push_later, &q);
	got = vb_waitq_get(&q);
	pthread_join(t, &pushed);
	cr_assert_eq(got, pushed);
	vb_waitq_fini(&q);
}

Test(waitq, wakes_an_edge_triggered_program_with_each)
{
	struct epoll_event ev = {.events = EPOLLIN | EPOLLET}, out;
	struct vb_wait_item a, b;
	struct vb_waitq q;
	int epoll = epoll_create1(0);

	vb_waitq_init(&q, NULL);
	epoll_ctl(epoll, EPOLL_CTL_ADD, q.event, &ev);
	vb_waitq_push(&q, &a);
	cr_assert_eq(epoll_wait(epoll, &out, 1, 0), 1);
	cr_assert_eq(epoll_wait(epoll, &out, 1, 0), 0, "each item wakes once");
	vb_waitq_push(&q, &b);
	cr_assert_eq(epoll_wait(epoll, &out, 1, 0), 1, "the next item wakes again");
	close(epoll);
	vb_waitq_fini(&q);
}

static int left;

static bool
count_down(struct vb_wait_item *item)
{
	return --left > 0;
}

Test(waitq, keeps_an_item_of_which_there_is_more)
{
	struct vb_wait_item a;
	struct vb_waitq q;

	left = 2;
	vb_waitq_init(&q, count_down);
	vb_waitq_push(&q, &a);
	cr_assert_eq(vb_waitq_pop(&q), &a);
	cr_assert(readable(q.event));
	cr_assert_eq(vb_waitq_pop(&q), &a);
	cr_assert(!readable(q.event));
	cr_assert_null(vb_waitq_pop(&q));
	vb_waitq_fini(&q);
}

static bool
is(const struct vb_wait_item *item, void *arg)
{
	return item == arg;
}

Test(waitq, drops_what_its_owner_takes_out_of_the_middle)
{
	struct vb_wait_item a, b;
	struct vb_waitq q;

	left = 100;
	vb_waitq_init(&q, count_down);
	vb_waitq_push(&q, &a);
	vb_waitq_push(&q, &b);
	cr_assert_eq(vb_waitq_take(&q, is, &b), &b);
	cr_assert_null(vb_waitq_take(&q, is, &b));
	cr_assert(readable(q.event));
	cr_assert_eq(vb_waitq_take(&q, is, &a), &a);
	cr_assert(!readable(q.event), "the queue is empty");
	cr_assert_eq(left, 100, "vb_waitq_take() does not call taken()");
	vb_waitq_fini(&q);
}

struct cancelled {
	struct vb_waitq q;
	struct vb_wait_item item;
};

static void *
pop_and_push(void *arg)
{
	struct cancelled *c = arg;

	pthread_cancel(pthread_self());
	vb_waitq_push(&c->q, &c->item);
	if (vb_waitq_pop(&c->q) == &c->item)
		vb_waitq_push(&c->q, &c->item);
	pthread_testcancel();
	return NULL;
}

static void *
get(void *arg)
{
	return vb_waitq_get(&((struct cancelled *)arg)->q);
}

Test(waitq, a_cancelled_thread_holds_no_lock_and_takes_no_item)
{
	struct cancelled c;
	pthread_t thread;
	void *end;

	vb_waitq_init(&c.q, NULL);
	cr_assert_eq(pthread_create(&thread, NULL, get, &c), 0);
	cr_assert_eq(pthread_cancel(thread), 0);
	cr_assert_eq(pthread_join(thread, &end), 0);
	cr_assert_eq(end, PTHREAD_CANCELED);
	cr_assert_eq(pthread_create(&thread, NULL, pop_and_push, &c), 0);
	cr_assert_eq(pthread_join(thread, &end), 0);
	cr_assert_eq(end, PTHREAD_CANCELED);
	cr_assert_eq(vb_waitq_pop(&c.q), &c.item);
	vb_waitq_fini(&c.q);
}

/* ---- fork(2) ---- */

Test(waitq, a_child_that_takes_items_leaves_its_parent_the_wake_up, .timeout = 30)
{
	struct vb_wait_item a;
	struct vb_waitq q;
	int status;
	pid_t child;

	vb_waitq_init(&q, NULL);
	vb_waitq_push(&q, &a);
	child = fork();
	if (child == 0) {
		bool good = vb_waitq_take(&q, is, &a) == &a && vb_waitq_pop(&q) == NULL;

		errno = 0;
		_exit(good && vb_waitq_get(&q) == NULL && errno == EIO ? 0 : 1);
	}
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%#x", status);
	cr_assert(readable(q.event));
	cr_assert_eq(vb_waitq_pop(&q), &a);
	cr_assert(!readable(q.event));
	vb_waitq_fini(&q);
}

Test(waitq, a_child_does_not_wait_for_a_lock_of_its_parent, .timeout = 30)
{
	struct vb_wait_item a;
	struct vb_waitq q;
	int status;
	pid_t child;

	vb_waitq_init(&q, NULL);
	vb_waitq_push(&q, &a);
	pthread_mutex_lock(&q.lock);
	child = fork();
	if (child == 0) {
		alarm(10);
		_exit(vb_waitq_take(&q, is, &a) == NULL ? 0 : 1);
	}
	pthread_mutex_unlock(&q.lock);
	cr_assert_eq(waitpid(child, &status, 0), child);
	cr_assert_eq(status, 0, "%#x", status);
	vb_waitq_fini(&q);
}

/* ---- Signals ---- */

static volatile sig_atomic_t handled;

static void
on_signal(int sig)
{
	handled++;
}

struct interrupted {
	struct vb_waitq q;
	struct vb_wait_item item;
	pthread_t waits;
};

/* Interrupts the thread that waits, and adds an item later. */
static void *
interrupt(void *arg)
{
	struct interrupted *i = arg;

	while (handled < 3) {
		usleep(10000);
		pthread_kill(i->waits, SIGUSR1);
	}
	usleep(10000);
	vb_waitq_push(&i->q, &i->item);
	return NULL;
}

static struct vb_wait_item *
get_interrupted(struct interrupted *i, int flags)
{
	const struct sigaction sa = {.sa_handler = on_signal, .sa_flags = flags};
	struct vb_wait_item *got;
	pthread_t t;

	vb_waitq_init(&i->q, NULL);
	i->waits = pthread_self();
	cr_assert_eq(sigaction(SIGUSR1, &sa, NULL), 0);
	pthread_create(&t, NULL, interrupt, i);
	errno = 0;
	got = vb_waitq_get(&i->q);
	pthread_join(t, NULL);
	return got;
}

Test(waitq, goes_on_after_a_handler_with_SA_RESTART, .timeout = 30)
{
	struct interrupted i;

	cr_assert_eq(get_interrupted(&i, SA_RESTART), &i.item);
	cr_assert_geq(handled, 3);
	vb_waitq_fini(&i.q);
}

Test(waitq, says_EINTR_after_a_handler_without_SA_RESTART, .timeout = 30)
{
	struct interrupted i;

	cr_assert_null(get_interrupted(&i, 0));
	cr_assert_eq(errno, EINTR);
	cr_assert_eq(vb_waitq_pop(&i.q), &i.item);
	vb_waitq_fini(&i.q);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * getifaddrs(3) with the addresses of the saker behind those of the kernel, where $SAKER_IFADDRS is
 * set. The interface is called `saker`. It is up and runs, and has no number in the kernel. Its
 * masks have every bit: a client of a saker does not learn the networks behind an address.
 */
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>

#include <saker/saker.h>

#include "sysfs_priv.h"

#define EXPORT __attribute__((visibility("default")))
#define MOST   8 /* of struct saker_device */

/* The elements behind one list of the kernel's. */
struct own {
	struct own *next;
	struct ifaddrs **link; /* the place that refers to ours */
	struct ifaddrs ifa[MOST];
	struct sockaddr_in6 addr[MOST], mask[MOST];
	struct ifaddrs *list; /* what the program got */
	char name[8];
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static struct own *lists;
static void *next_getifaddrs, *next_freeifaddrs;

static void
ifaddr_write(const struct sk_addr *a, struct sockaddr_in6 *addr, struct sockaddr_in6 *mask)
{
	struct sockaddr_in in = {.sin_family = AF_INET};

	if (!sk_addr_is_v4(a)) {
		addr->sin6_family = mask->sin6_family = AF_INET6;
		memcpy(&addr->sin6_addr, a->b, 16);
		memset(&mask->sin6_addr, 0xff, 16);
		return;
	}
	memcpy(&in.sin_addr, a->b + 12, 4);
	memcpy(addr, &in, sizeof(in));
	memset(&in.sin_addr, 0xff, 4);
	memcpy(mask, &in, sizeof(in));
}

/* Asks the saker, by an attachment that lasts no longer. Returns how many addresses there are. */
static unsigned
addresses_take(struct own *o)
{
	struct saker_device d = {0};
	struct saker *s;
	unsigned n = 0;

	if (saker_open(NULL, "getifaddrs", &s) < 0)
		return 0;
	if (saker_device(s, &d) == 0)
		n = d.naddrs < MOST ? d.naddrs : MOST;
	saker_close(s);
	strcpy(o->name, "saker");
	for (unsigned i = 0; i < n; i++) {
		struct ifaddrs *a = &o->ifa[i];

		ifaddr_write(&d.addrs[i], &o->addr[i], &o->mask[i]);
		a->ifa_name = o->name;
		a->ifa_flags = IFF_UP | IFF_RUNNING;
		a->ifa_addr = (struct sockaddr *)&o->addr[i];
		a->ifa_netmask = (struct sockaddr *)&o->mask[i];
		a->ifa_next = i + 1 < n ? a + 1 : NULL;
	}
	return n;
}

EXPORT int
getifaddrs(struct ifaddrs **list)
{
	__typeof__(&getifaddrs) next = vb_sysfs_next(&next_getifaddrs, "getifaddrs");
	const char *wanted = getenv("SAKER_IFADDRS");
	int rc = next(list);
	struct own *o;

	if (rc != 0 || wanted == NULL || (o = calloc(1, sizeof(*o))) == NULL)
		return rc;
	if (addresses_take(o) == 0) {
		free(o);
		return 0;
	}
	for (o->link = list; *o->link != NULL;)
		o->link = &(*o->link)->ifa_next;
	*o->link = o->ifa;
	o->list = *list;
	if (o->link == list)
		o->link = NULL; /* the kernel has none */
	pthread_mutex_lock(&lock);
	o->next = lists;
	lists = o;
	pthread_mutex_unlock(&lock);
	return 0;
}

EXPORT void
freeifaddrs(struct ifaddrs *list)
{
	__typeof__(&freeifaddrs) next = vb_sysfs_next(&next_freeifaddrs, "freeifaddrs");
	struct own **p, *o;

	pthread_mutex_lock(&lock);
	for (p = &lists; *p != NULL && (*p)->list != list;)
		p = &(*p)->next;
	o = *p;
	if (o != NULL)
		*p = o->next;
	pthread_mutex_unlock(&lock);
	if (o != NULL && o->link != NULL)
		*o->link = NULL;
	if (o == NULL || o->link != NULL)
		next(list);
	free(o);
}

/* ---- fork(2) ---- */

static void
ifaddrs_fork_prepare(void)
{
	pthread_mutex_lock(&lock);
}

static void
ifaddrs_fork_parent(void)
{
	pthread_mutex_unlock(&lock);
}

static void
ifaddrs_fork_child(void)
{
	pthread_mutex_init(&lock, NULL);
}

__attribute__((constructor)) static void
ifaddrs_watch_forks(void)
{
	pthread_atfork(ifaddrs_fork_prepare, ifaddrs_fork_parent, ifaddrs_fork_child);
}

/* SPDX-License-Identifier: BSD-3-Clause */
/*
 * The device of an Ethernet port while it is in use: it may be removed and come back, and its
 * driver may have to connect to a peer again. The ports of an engine have such a device, and so has
 * the uplink of a gateway.
 *
 * The threads that receive and send read `gone` before each burst, and do not use the device while
 * it is set. One thread, the owner's, calls all functions below.
 */
#ifndef SAKER_ENGINE_DEVICE_H
#define SAKER_ENGINE_DEVICE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define ENG_BARS 6 /* most mapped register areas of a device */

struct eng_device {
	uint16_t id; /* DPDK's port number */
	/* All atomic. `again`: the device is gone only until it has started again. `down`: the link
	 * was down when eng_device_look() was called. */
	bool gone, again, down;
	uint32_t speed;           /* of the link at that time: Mb/s; 0: unknown. Atomic */
	bool connects;            /* the driver connects to its peer only when the port starts */
	unsigned connecting;      /* calls of eng_device_look() until the first link */
	unsigned looks;           /* since no thread uses a device that is gone; 1 before */
	int bars[ENG_BARS];       /* guards of the mapped registers; below 0: none */
	char name[64], args[192]; /* the device and its arguments, as EAL knows them */
	char port[64];            /* the name of its port */
	void (*lost)(void *arg);  /* see eng_device_watch() */
	void *arg;
};

enum eng_device_change {
	ENG_DEVICE_SAME,
	ENG_DEVICE_STARTED, /* it has started again: call eng_device_back() */
	ENG_DEVICE_UNUSED,  /* it was removed and no thread uses it: call eng_device_release() */
};

/* Begins to watch the device d->id, which runs. The other members are zero, or those of the device
 * that was removed. Any thread calls lost(arg) after it has set d->gone; NULL: nobody does. */
void eng_device_watch(struct eng_device *d, void (*lost)(void *arg), void *arg);
/* Ends the watch. */
void eng_device_unwatch(struct eng_device *d);
/* Polls the device; call it about once a second. It logs changes of the link and the removal of the
 * device, takes a device without a link out of use whose driver must connect again, and starts it.
 * `unused`: since d->gone was set, each thread has noted that. */
enum eng_device_change eng_device_look(struct eng_device *d, bool unused);
/* Lets all threads use the device. */
void eng_device_back(struct eng_device *d);
/* Stops and closes a device that was removed and that no thread uses, and ends its watch. */
void eng_device_release(struct eng_device *d);
/* Lets EAL find a device again that was released, and sets d->id. Its port is not configured yet.
 * `in_use`: the device is not released. Returns 0, or -errno with a sentence in `err`: -EEXIST when
 * the device was not removed, -EBUSY when it is in use. */
int eng_device_probe(struct eng_device *d, bool in_use, char *err, size_t errlen);

/* Returns whether the device is out of use. */
static inline bool
eng_device_is_gone(const struct eng_device *d)
{
	return __atomic_load_n(&d->gone, __ATOMIC_ACQUIRE);
}
/* Returns whether a device that is out of use starts again by itself. */
static inline bool
eng_device_is_again(const struct eng_device *d)
{
	return __atomic_load_n(&d->again, __ATOMIC_RELAXED);
}
/* Returns whether the device was removed. */
static inline bool
eng_device_is_removed(const struct eng_device *d)
{
	return eng_device_is_gone(d) && !eng_device_is_again(d);
}

#endif

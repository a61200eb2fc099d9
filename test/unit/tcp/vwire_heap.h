/* SPDX-License-Identifier: BSD-3-Clause */
/* The heap of packets on the virtual wire, by arrival time. */
#ifndef SAKER_TEST_VWIRE_HEAP_H
#define SAKER_TEST_VWIRE_HEAP_H

#include "vwire.h"

void vw_heap_push(struct vwire *w, struct vw_packet *p);
struct vw_packet *vw_heap_pop(struct vwire *w);

#endif

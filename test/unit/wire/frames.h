/* SPDX-License-Identifier: BSD-3-Clause */
/* Whole frames, computed by a short Python program. tshark 4.0 accepts them with their
 * checksums. */
#ifndef SAKER_TEST_WIRE_FRAMES_H
#define SAKER_TEST_WIRE_FRAMES_H

#define F_ETH4 "020000000002 020000000001 0800"
#define F_ETH6 "020000000002 020000000001 86dd"

/* TCP over IPv4 with timestamps, ECT(0), PSH and ACK, and 5 bytes "hello". */
#define F_TCP4                                                                                     \
	F_ETH4 "450200391c46400040069a73c0000201c0000202"                                          \
	       "c001123401020304a1b2c3d480187210efb10000 0101080a1122334455667788 68656c6c6f"
/* SYN, ECE and CWR over IPv6: MSS 1460, SACK permitted, timestamps, window scale 7; DSCP 46, ECN 1,
 * and a flow label. */
#define F_SYN6                                                                                     \
	F_ETH6 "6b9abcde0028064020010db8000000000000000000000001"                                  \
	       "20010db8000000000000000000000002"                                                  \
	       "c001123401020304a1b2c3d4a0c272103df70000"                                          \
	       "020405b4 0402080a0000000100000000 01030307"
/* Three SACK blocks, the last one across the wrap, and timestamps. */
#define F_SACK4                                                                                    \
	F_ETH4 "450000501c46400040069a5ec0000201c0000202"                                          \
	       "c001123401020304a1b2c3d4f0107210bcff0000 0101080a1122334455667788"                 \
	       "0101051a 0000000a00000014 0000001e00000028 fffffff000000005"
/* IPv4 with the router alert option. */
#define F_OPT4                                                                                     \
	F_ETH4 "4600002c1c4640004006057ec0000201c000020294040000"                                  \
	       "c001123401020304a1b2c3d4501072107dfd0000"
/* UDP over IPv4, VLAN 100 with priority 5, "abc", then Ethernet padding. */
#define F_UDP4_VLAN                                                                                \
	"020000000002 020000000001 8100 a064 0800"                                                 \
	"4500001f1c46400040119a84c0000201c0000202 10002000000b8771 616263 00000000000000"
/* UDP over IPv6, behind hop-by-hop options, destination options and a routing header without
 * segments left. */
#define F_EXT6                                                                                     \
	F_ETH6 "600000000024004020010db8000000000000000000000001"                                  \
	       "20010db8000000000000000000000002"                                                  \
	       "3c00050200000100 2b00010400000000 1100fd0000000000 10002000000c836e 7778797a"
#define F_ARP                                                                                      \
	"ffffffffffff 020000000001 0806 0001080006040001 020000000001c0000201"                     \
	"000000000000c0000202 000000000000000000000000000000000000"
/* Echo requests with "ping!" and "six". */
#define F_ECHO4 F_ETH4 "450000211c46400040019a92c0000201c0000202 0800e5f312340007 70696e6721"
#define F_ECHO6                                                                                    \
	F_ETH6 "60000000000b3a4020010db8000000000000000000000001"                                  \
	       "20010db8000000000000000000000002 800079e9beef0002 736978"
/* Fragmentation needed, MTU 1400, with 8 bytes of the TCP header. */
#define F_FRAG_NEEDED4                                                                             \
	F_ETH4 "450000381c46400040019a7bc0000201c0000202 0304214800000578"                         \
	       "4500001c1c46400040069a92c0000201c0000202 c001123401020304"
/* Packet too big, MTU 1280. */
#define F_TOO_BIG6                                                                                 \
	F_ETH6 "6000000000443a4020010db8000000000000000000000001"                                  \
	       "20010db8000000000000000000000002 0200dd5e00000500"                                 \
	       "600000000014064020010db8000000000000000000000001"                                  \
	       "20010db8000000000000000000000002 c001123401020304a1b2c3d45010721000000000"
#define F_SOLICIT                                                                                  \
	F_ETH6 "6000000000203aff20010db8000000000000000000000001"                                  \
	       "ff0200000000000000000001ff000002 87001c2700000000"                                 \
	       "20010db8000000000000000000000002 0101020000000001"
#define F_ADVERT                                                                                   \
	F_ETH6 "6000000000203aff20010db8000000000000000000000002"                                  \
	       "20010db8000000000000000000000001 88008a7260000000"                                 \
	       "20010db8000000000000000000000001 0201020000000002"
#define F_ROUTER                                                                                   \
	F_ETH6 "6000000000203afffe800000000000000000000000000001"                                  \
	       "ff020000000000000000000000000001 8600273640000708 0000000000000000"                \
	       "0101020000000003 05010000000005dc"

#endif

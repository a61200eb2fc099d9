/* SPDX-License-Identifier: BSD-3-Clause */
/* Words, texts, addresses and lists: accepted forms, and the sentence for each refused one. */
#include <criterion/criterion.h>

#include <errno.h>
#include <string.h>

#include "../../../lib/conf/conf.h"

static char why[CONF_WHY];

Test(conf_value, a_truth_value_has_eight_words)
{
	static const char *const yes[] = {"yes", "ON", "True", "1"};
	static const char *const no[] = {"no", "off", "FALSE", "0"};
	bool v;

	for (size_t i = 0; i < 4; i++) {
		v = false;
		cr_assert_eq(conf_bool(yes[i], &v, why), 0);
		cr_assert(v);
		cr_assert_eq(conf_bool(no[i], &v, why), 0);
		cr_assert_not(v);
	}
	cr_assert_eq(conf_bool("maybe", &v, why), -EINVAL);
	cr_assert_str_eq(why, "is neither yes nor no");
	cr_assert_eq(conf_bool("", &v, why), -EINVAL);
}

Test(conf_value, a_refused_word_gets_the_list)
{
	static const struct conf_word words[] = {{"poll", 3}, {"sleep", 4}, {NULL, 0}};
	uint64_t v = 9;

	cr_assert_eq(conf_word("slee", words, &v, why), -EINVAL);
	cr_assert_str_eq(why, "is not one of poll, sleep");
	cr_assert_eq(v, 9);
	cr_assert_eq(conf_word("SLEEP", words, &v, why), 0);
	cr_assert_eq(v, 4);
	cr_assert_str_eq(conf_word_name(words, 3), "poll");
	cr_assert_str_eq(conf_word_name(words, 5), "");
}

Test(conf_value, a_text_has_a_length)
{
	char text[4] = "x";

	cr_assert_eq(conf_text("", sizeof(text), text, why), -EINVAL);
	cr_assert_str_eq(why, "is empty");
	cr_assert_eq(conf_text("abcd", sizeof(text), text, why), -EINVAL);
	cr_assert_str_eq(why, "is longer than 3 bytes");
	cr_assert_str_eq(text, "x");
	cr_assert_eq(conf_text("abc", sizeof(text), text, why), 0);
	cr_assert_str_eq(text, "abc");
}

Test(conf_value, addresses_prefixes_and_macs)
{
	static const struct {
		const char *text, *why;
	} wrong[] = {
		{"10.0.0.1", "is not an address with its prefix length, such as 10.0.0.1/24"},
		{"10.0.0.300/24", "is not an IPv4 or IPv6 address with its prefix length"},
		{"10.0.0.1/33", "has a prefix length that is not within 0..32"},
		{"10.0.0.1/", "has a prefix length that is not within 0..32"},
		{"10.0.0.1/-1", "has a prefix length that is not within 0..32"},
		{"fd00::1/129", "has a prefix length that is not within 0..128"},
	};
	static const char *const macs[] = {"", "02:00:00:00:00", "02:00:00:00:00:0g",
		"02:00:00:00:00:001", "2:0:0:0:0:1", "02-00-00-00-00-01", "02: 0:00:00:00:01"};
	uint8_t mac[6] = {0};
	struct sk_addr a = {0};
	unsigned len = 99;

	for (size_t i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		cr_assert_eq(conf_prefix(wrong[i].text, &a, &len, why), -EINVAL);
		cr_assert_str_eq(why, wrong[i].why);
	}
	cr_assert_eq(len, 99);
	cr_assert_eq(conf_prefix("fd00::1/64", &a, &len, why), 0);
	cr_assert_eq(len, 64);
	cr_assert_eq(conf_addr("ten", &a, why), -EINVAL);
	cr_assert_str_eq(why, "is not an IPv4 or IPv6 address");
	for (size_t i = 0; i < sizeof(macs) / sizeof(macs[0]); i++) {
		cr_assert_eq(conf_mac(macs[i], mac, why), -EINVAL, "%s", macs[i]);
		cr_assert_str_eq(why, "is not a MAC address, such as 02:00:00:00:00:01");
	}
	cr_assert_eq(conf_mac("01:00:5e:00:00:01", mac, why), -EINVAL);
	cr_assert_str_eq(why, "is a multicast MAC address");
	cr_assert_eq(conf_mac("02:00:00:00:aA:01", mac, why), 0);
	cr_assert_eq(mac[4], 0xaa);
}

Test(conf_value, not_every_address_is_a_hosts_rfc1122_3_2_1_3)
{
	static const struct {
		const char *text, *why; /* NULL: it is a host's */
	} rows[] = {
		{"10.0.0.1/24", NULL},
		{"10.0.0.255/16", NULL},
		{"10.0.0.0/31", NULL},
		{"10.0.0.1/31", NULL},
		{"10.0.0.0/32", NULL},
		{"fd00::1/64", NULL},
		{"fd00::/127", NULL},
		{"fd00::ffff:ffff:ffff:ffff/64", NULL},
		{"0.0.0.0/0", "is the unspecified address"},
		{"::/64", "is the unspecified address"},
		{"127.0.0.1/8", "is a loopback address"},
		{"127.255.0.1/32", "is a loopback address"},
		{"::1/128", "is a loopback address"},
		{"224.0.0.1/24", "is a multicast address"},
		{"239.1.2.3/8", "is a multicast address"},
		{"ff02::1/64", "is a multicast address"},
		{"240.0.0.1/8", "is a reserved address"},
		{"255.255.255.255/32", "is a reserved address"},
		{"10.0.0.0/24", "is the address of its network, which no host has"},
		{"10.0.0.4/30", "is the address of its network, which no host has"},
		{"fd00::/64", "is the address of its network, which no host has"},
		{"10.0.0.255/24", "is the broadcast address of its network, which no host has"},
		{"10.0.0.7/30", "is the broadcast address of its network, which no host has"},
	};

	for (size_t i = 0; i < sizeof(rows) / sizeof(rows[0]); i++) {
		struct sk_addr a;
		unsigned len;

		cr_assert_eq(conf_prefix(rows[i].text, &a, &len, why), 0);
		cr_assert_eq(conf_host(&a, len, why), rows[i].why == NULL ? 0 : -EINVAL, "%s",
			rows[i].text);
		if (rows[i].why != NULL)
			cr_assert_str_eq(why, rows[i].why, "%s: %s", rows[i].text, why);
	}
}

Test(conf_value, a_prefix_that_no_host_has_stores_nothing)
{
	static const char *const wrong[] = {"10.0.0.9", "10.0.0.9/33", "0.0.0.0/0", "127.0.0.1/8",
		"224.0.0.1/4", "10.0.0.0/24", "10.0.0.255/24", "fd00::/64"};
	struct sk_addr a, before;
	unsigned len = 7;

	cr_assert_eq(sk_addr_parse("192.0.2.1", &before), 0);
	a = before;
	for (unsigned i = 0; i < sizeof(wrong) / sizeof(wrong[0]); i++) {
		why[0] = '\0';
		cr_assert_eq(conf_host_prefix(wrong[i], &a, &len, why), -EINVAL, "%s", wrong[i]);
		cr_assert_neq(why[0], '\0', "%s", wrong[i]);
		cr_assert(sk_addr_eq(&a, &before), "%s", wrong[i]);
		cr_assert_eq(len, 7, "%s", wrong[i]);
	}
	cr_assert_eq(conf_host_prefix("10.0.0.9/24", &a, &len, why), 0);
	cr_assert_eq(len, 24);
	cr_assert_eq(sk_addr_parse("10.0.0.9", &before), 0);
	cr_assert(sk_addr_eq(&a, &before));
}

static int
append(void *arg, const char *item, char reason[CONF_WHY])
{
	if (strcmp(item, "bad") == 0) {
		strcpy(reason, "has a bad item");
		return -EINVAL;
	}
	strcat(strcat(arg, item), ".");
	return 0;
}

Test(conf_value, a_list_has_items_between_commas_and_blanks)
{
	char all[64] = "", item[CONF_SHOWN + 1];

	cr_assert_eq(conf_list(" a,b,, c\td ,", append, all, why), 4);
	cr_assert_str_eq(all, "a.b.c.d.");
	cr_assert_eq(conf_list(" ,", append, all, why), -EINVAL);
	cr_assert_str_eq(why, "is an empty list");
	cr_assert_eq(conf_list("a,bad,c", append, all, why), -EINVAL);
	cr_assert_str_eq(why, "has a bad item");
	memset(item, 'x', CONF_SHOWN);
	item[CONF_SHOWN] = '\0';
	cr_assert_eq(conf_list(item, append, all, why), -EINVAL);
	cr_assert_str_eq(why, "has an item of more than 67 bytes");
}

Test(conf_value, a_shown_value_is_short_and_printable)
{
	char buf[CONF_SHOWN], text[200];

	cr_assert_str_eq(conf_shown("a\033[2Jb\n", buf), "a?[2Jb?");
	memset(text, 'x', sizeof(text));
	text[60] = '\0';
	cr_assert_str_eq(conf_shown(text, buf), text);
	text[60] = 'x';
	text[199] = '\0';
	cr_assert_eq(strlen(conf_shown(text, buf)), 63);
	cr_assert_str_eq(buf + 60, "...");
}

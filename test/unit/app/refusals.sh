#!/bin/sh
# SPDX-License-Identifier: BSD-3-Clause
# refusals.sh SAKER FOLDER: tests the launcher itself. After each mistake it prints one sentence and
# exits with code 1, and it ends cleanly.
saker=$1 work=$(mktemp -d "$2/refusals.XXXXXX") failed=0
trap 'rm -rf "$work"' EXIT
eal="--no-huge --no-shconf --no-pci -m 64 -l 0 --no-telemetry --vdev net_ring0"

# refused SENTENCE ARGUMENTS...: the last line on standard error is the sentence.
refused() {
	sentence=$1
	shift
	"$saker" "$@" >"$work/out" 2>"$work/err"
	code=$?
	if [ $code -ne 1 ] || [ "$(tail -n 1 "$work/err")" != "saker: $sentence" ]; then
		echo "not ok: saker $* gave $code: $(tail -n 1 "$work/err")"
		failed=1
	fi
}

# ini LINE...: writes a configuration file and prints its path.
ini() {
	for line in "$@"; do
		printf '%b\n' "$line"
	done >"$work/ini"
	echo "$work/ini"
}

# long_line N: writes a file of commands whose first line has N bytes and ends with bogus=1.
long_line() {
	line="set saker $(printf 'log=info %.0s' $(seq 111))"
	printf "%-$(($1 - 7))sbogus=1\\nquit\\n" "$line" >"$work/commands"
}

# shellcheck disable=SC2086
{
	refused "option '--bogus' is unknown" $eal -- --bogus
	refused "--mtu 12 is not a number within 1280..65517" $eal -- --mtu 12
	refused "the file /nonexistent cannot be read: No such file or directory" \
		$eal -- --config /nonexistent
	refused "address 10.0.0.1: there is no port '7'; EAL found 0 (net_ring0)" \
		$eal -- --address 7=10.0.0.1/24
	printf '[port 0]\ndevice = net_tap9\n' >"$work/ini"
	refused "[port 0]: there is no device 'net_tap9'; EAL found 0 (net_ring0)" \
		$eal -- --config "$work/ini"
	refused "EAL found no Ethernet port; add one with -a or --vdev" ${eal% --vdev*} -- -i
	refused "3 loops require 3 lcores, but EAL has 1 (-l or --lcores)" $eal -- --loops 3 \
		--socket "$work/s" --total-num-mbufs 2048
	refused "the command file /nonexistent cannot be read: No such file or directory" \
		$eal -- --cmdline-file /nonexistent
	refused "the command file /tmp cannot be read: Is a directory" $eal -- --cmdline-file /tmp
	# Its kind does not permit to read it before the start.
	python3 -c "import socket; socket.socket(socket.AF_UNIX).bind('$work/socket')"
	refused "the command file $work/socket cannot be read: No such device or address" \
		$eal -- --cmdline-file "$work/socket" --socket "$work/s" --idle yield \
		--total-num-mbufs 2048 --address 0=10.0.0.1/24
	long_line 1024
	refused "$work/commands:1: the line is longer than 1023 bytes" \
		$eal -- --cmdline-file "$work/commands"
	for line in "show nonsense" "sho qp all" "show qp" "show qp all now" "vm"; do
		printf '# a comment\n\n  show loops\nshow vms\n%s\nquit\n' "$line" >"$work/commands"
		case $line in
		show\ q*) why="is wrong: the command is 'show qp all|QPN'" ;;
		*) why="is not a command; 'help' lists all" ;;
		esac
		refused "$work/commands:5: '$line' $why" $eal -- --cmdline-file "$work/commands"
	done
	refused "the file /tmp cannot be read: Is a directory" $eal -- --config /tmp
	refused "Falcon: PSP with keys needs a pre-shared key or a certificate, under which the \
exchange transfers them" $eal -- --falcon yes --psp gcm128
	refused "Falcon: the unordered mode completes in error (RoF 6.4)" $eal -- --config \
		"$(ini '[falcon]' 'enabled = yes' 'ordering = none')"
	refused "Falcon: unordered datagrams complete in error (RoF 6.4)" $eal -- --config \
		"$(ini '[falcon]' 'enabled = yes' 'datagram-ordering = none' \
			'datagram-errors = verbs')"
	refused "Falcon: the least window of Swift (40 packets), the initial one (10) and the \
largest one (256) are not in this order within 0..2047" $eal -- --config \
		"$(ini '[falcon]' 'enabled = yes' 'swift-min = 40' 'swift-initial = 10')"
	refused "the control stage's loop 7 does not exist" $eal -- --control-loop 7
	gateway='[gateway]\nenabled = yes'
	refused "$work/ini:3: [vm 0] is wrong: the machine lacks path=" $eal -- --config \
		"$(ini "$gateway" '[vm 0]' 'name = a')"
	refused "$work/ini:3: [vm 1] is wrong: ip=10.0.0.0/24 is the address of its network, \
which no host has" $eal -- --config "$(ini "$gateway" '[vm 1]' 'name = a' 'path = /x' \
		'ip = 10.0.0.0/24')"
	refused "$work/ini:3: [vm 0] is wrong: size=1x is not a size within 1m..64g" $eal -- \
		--config "$(ini "$gateway" '[vm 0]' 'size = 1x')"
}

# --check reads everything, starts nothing, and fails as a start does.
# shellcheck disable=SC2086
"$saker" $eal -- --check --config "$(ini '[interface 0]' 'port = 0' 'address = 10.0.0.1/24')" \
	>"$work/out" 2>&1 || {
	echo "not ok: --check refuses a good configuration: $(cat "$work/out")"
	failed=1
}
[ -s "$work/out" ] && {
	echo "not ok: --check prints $(head -n 1 "$work/out")"
	failed=1
}
# shellcheck disable=SC2086
refused "$work/ini:2: the line 'psp gcm256' is neither [section] nor key = value" $eal -- --check \
	--config "$(ini '[falcon]' 'psp gcm256')"

# The last word of the longest line counts, too.
long_line 1023
# shellcheck disable=SC2086
"$saker" $eal -- --socket "$work/s" --idle yield --total-num-mbufs 2048 \
	--cmdline-file "$work/commands" >"$work/out" 2>"$work/err"
grep -qF "[saker] has no key 'bogus'." "$work/out" || {
	echo "not ok: a line of 1023 bytes gave $(head -n 1 "$work/out")"
	failed=1
}

# saker starts, executes a file of commands, and ends at `quit`.
cat >"$work/commands" <<END
help
show port stats all
show port info 0
show qp all
show client all
show counters nonzero
show neighbors
show loops
show config
stop
show neighbors
start
clear counters
clear port stats all
quit
END
# shellcheck disable=SC2086
if ! "$saker" $eal -- --socket "$work/s" --address 0=10.0.0.1/24 --idle yield \
	--total-num-mbufs 2048 --cmdline-file "$work/commands" >"$work/out" 2>"$work/err"; then
	echo "not ok: saker does not run: $(tail -n 1 "$work/err")"
	failed=1
fi
# A pipe can be read only once: saker executes all of it.
mkfifo "$work/pipe"
printf 'show loops\nquit\n' >"$work/pipe" &
# shellcheck disable=SC2086
timeout 60 "$saker" $eal -- --socket "$work/s" --idle yield --total-num-mbufs 2048 \
	--cmdline-file "$work/pipe" >"$work/piped" 2>"$work/err" || {
	echo "not ok: commands from a pipe gave $?"
	failed=1
}
grep -q "control transport0" "$work/piped" || {
	echo "not ok: the first command from a pipe is lost"
	failed=1
}
for words in "rx packets" "net_ring0" "10.0.0.1/24" "(no clients)" "(no qps)" \
	"control transport0 engine0" "yield" "(no neighbors)" "option" "Stopped." \
	"The loops are stopped" "Started." "Counters cleared." "Forward statistics for port 0"; do
	grep -qF -- "$words" "$work/out" || {
		echo "not ok: the output lacks '$words'"
		failed=1
	}
done

# falcon OPTIONS...: runs saker with Falcon and two of its commands.
printf 'show falcon\nfalcon reload\nquit\n' >"$work/commands"
falcon() {
	# shellcheck disable=SC2086
	"$saker" $eal -- --socket "$work/s" --idle yield --total-num-mbufs 2048 --falcon yes \
		--cmdline-file "$work/commands" "$@" >"$work/out" 2>&1 || {
		echo "not ok: saker with Falcon does not run: $(tail -n 1 "$work/out")"
		failed=1
	}
}
# says WORDS...: the output has them.
says() {
	for words in "$@"; do
		grep -qF -- "$words" "$work/out" || {
			echo "not ok: the output lacks '$words'"
			failed=1
		}
	done
}
falcon
says "FALCON IS UNPROTECTED" "there is no address" "IN CLEAR: no peer" "psp  " \
	"require psp  " "There is nothing to read"
(umask 077 && echo 000102030405060708090a0b0c0d0e0f >"$work/psk")
export SAKER_FALCON_PSK="$work/psk"
falcon --psp gcm256
says "TLS 1.3; psk for all peers" "times loaded" "gcm256  " "Read again."
grep -q UNPROTECTED "$work/out" && {
	echo "not ok: saker warns although there is a key"
	failed=1
}
chmod 644 "$work/psk"
# shellcheck disable=SC2086
refused "[falcon] psk = $work/psk can be read by others: its mode is 0644 (chmod o-rwx)" $eal -- \
	--falcon yes
unset SAKER_FALCON_PSK
# shellcheck disable=SC2086
SAKER_FALCON_REQUIRE_PSP=yes refused \
	"Falcon: require-psp = yes, but psp lists no version with keys" $eal -- --falcon yes

# SIGTERM ends saker cleanly.
mkfifo "$work/ready"
# shellcheck disable=SC2086
"$saker" $eal -- --socket "$work/s" --idle yield --total-num-mbufs 2048 --stats-period 1 \
	>"$work/ready" 2>"$work/err" &
pid=$!
# The first statistics show that the loops run.
grep -m 1 -q "rx packets" <"$work/ready"
kill -TERM $pid
wait $pid || {
	echo "not ok: SIGTERM gave $?"
	failed=1
}
# The prompt reads standard input and ends at its end.
# shellcheck disable=SC2086
printf 'show loops\nnonsense\nshow port stats 9\n' | "$saker" $eal -- -i --socket "$work/s" \
	--idle yield --total-num-mbufs 2048 >"$work/out" 2>"$work/err" || {
	echo "not ok: the end of input gave $?"
	failed=1
}
for words in "saker> " "control transport0" "There is no port '9'." "Forward statistics"; do
	grep -qF -- "$words" "$work/out" || {
		echo "not ok: the prompt's output lacks '$words'"
		failed=1
	}
done
[ $failed -eq 0 ] && echo "ok"
exit $failed

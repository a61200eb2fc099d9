#!/usr/bin/env python3
# SPDX-License-Identifier: BSD-3-Clause
"""Writes the table, the JSON file and the data of the pictures of report.sh.

    report.py RUNS COUNTS FOLDER MACHINE VERSION SECONDS

RUNS has a JSON object of saker-perf in each line, with the name of the figure and the round.
COUNTS has a name and a number of instructions in each line.
"""
import json
import os
import statistics
import sys
import time

# Of the 64-byte floor in ns. The targets name a floor below 300, near 550 and above 900.
CLASSES = ("below 300", "300 to 725", "above 725")


def ratio(run):
    return run["ratio"]


def tail(run):
    return run["p99_ns"] / run["p50_ns"]


def rate(run):
    return run["mops"]


# Figure, run, function of a run, "<=" where less is better, and the wanted value: a number, or one
# for each class of floor.
ROWS = (
    ("64 B Write p50 / floor, iWARP", "latency-iwarp", ratio, "<=", (1.9, 1.5, 1.3)),
    ("64 B Write p50 / floor, Falcon", "latency-falcon", ratio, "<=", (2.5, 1.6, 2.0)),
    ("64 B Write p99 / p50, iWARP", "latency-iwarp", tail, "<=", 1.5),
    ("64 B Write p99 / p50, Falcon", "latency-falcon", tail, "<=", 1.5),
    ("64 KiB Write / floor, iWARP", "write-64k-iwarp", ratio, ">=", 0.85),
    ("64 KiB Read / floor, iWARP", "read-64k-iwarp", ratio, ">=", 0.75),
    ("64 KiB Write / floor, Falcon", "write-64k-falcon", ratio, ">=", 0.9),
    ("64 KiB Read / floor, Falcon", "read-64k-falcon", ratio, ">=", 0.75),
    ("64 KiB Write / floor, Falcon with gcm128", "sealed-64k-falcon", ratio, ">=", 0.75),
    ("8 B Write / packed floor, iWARP", "write-8-iwarp", ratio, ">=", 0.33),
    ("8 B Write / frame floor, Falcon", "write-8-falcon", ratio, ">=", 0.5),
    ("8 B Read, Falcon (M/s)", "read-8-falcon", rate, ">=", 4),
    ("8 B FetchAdd, Falcon (M/s)", "fetch-add-8-falcon", rate, ">=", 4),
)
COUNT_ROWS = (
    ("instructions of an 8 B Write, iWARP", "write-iwarp", 700),
    ("instructions of an 8 B Write, Falcon", "write-falcon", 1600),
    ("instructions of a 64 B ping-pong, iWARP", "pong-iwarp", 3500),
    ("instructions of a 64 B ping-pong, Falcon", "pong-falcon", 4000),
    ("instructions of an 8 B Read, iWARP", "read-iwarp", None),
    ("instructions of an 8 B Read, Falcon", "read-falcon", None),
    ("instructions of an 8 B FetchAdd, Falcon", "fetch-add-falcon", None),
)


def class_of(ns):
    """Returns the index of the class of a floor of `ns`."""
    return 0 if ns < 300 else 1 if ns < 725 else 2


def median(runs, figure):
    return statistics.median(figure(r) for r in runs)


def absolute(runs, value):
    """Returns the figure of the product and that of the floor, in the test's unit."""
    test = "tail" if value is tail else runs[0]["test"]
    key, unit = {"lat": ("p50_ns", "ns"), "tail": ("p99_ns", "ns"), "bw": ("gbps", "Gb/s"),
                 "rate": ("mops", "M/s")}[test]
    own = median(runs, lambda r: r[key])
    floor = median(runs, lambda r: r["floor_" + key])
    return tuple((f"{v:.0f}" if v >= 100 else f"{v:.3g}") + " " + unit for v in (own, floor))


def rows_of(runs):
    """Yields the lines of the table: one for each class of floor in which a figure was measured."""
    for figure, name, value, better, wanted in ROWS:
        for cls in range(len(CLASSES)):
            group = [r for r in runs if r["name"] == name and r["class"] == cls]
            if not group:
                continue
            want = wanted[cls] if isinstance(wanted, tuple) else wanted
            is_ = median(group, value)
            met = is_ <= want if better == "<=" else is_ >= want
            note = "yes" if met else "no"
            own, floor = absolute(group, value)
            fault = any(r["ratio"] < 1 if r["test"] == "lat" else r["ratio"] > 1 for r in group)
            if fault:
                note += ", the floor is at fault"
            yield {"figure": figure, "wanted": f"{better} {want:g}", "measured": round(is_, 3),
                   "own": own, "floor": floor, "class": CLASSES[cls], "rounds": len(group),
                   "frame_floor_ns": median(group, lambda r: r["frame_floor_ns"]), "met": note}


def count_rows(counts):
    for figure, name, want in COUNT_ROWS:
        if name not in counts:
            continue
        met = "" if want is None else "yes" if counts[name] <= want else "no"
        yield {"figure": figure, "wanted": "" if want is None else f"<= {want}",
               "measured": round(counts[name]), "own": "", "floor": "", "class": "", "rounds": "",
               "frame_floor_ns": None, "met": met}


def write_table(path, head, rows):
    with open(path, "w", encoding="utf-8") as f:
        f.write(head + "\n\n")
        f.write("| figure | wanted | measured | met | absolute | floor | "
                "64 B floor (class), rounds |\n|---|---|---|---|---|---|---|\n")
        for r in rows:
            where = ""
            if r["frame_floor_ns"] is not None:
                where = f"{r['frame_floor_ns']:.0f} ns ({r['class']}), {r['rounds']}"
            f.write(f"| {r['figure']} | {r['wanted']} | {r['measured']} | {r['met']} | {r['own']} "
                    f"| {r['floor']} | {where} |\n")


def write_distribution(path, histograms):
    """Writes the share of messages that take longer than each latency."""
    total = {}
    for histogram in histograms:
        for ns, n in histogram:
            total[ns] = total.get(ns, 0) + n
    left = count = sum(total.values()) or 1
    with open(path, "w", encoding="utf-8") as f:
        for ns in sorted(total):
            f.write(f"{ns} {left / count:.8f}\n")
            left -= total[ns]


def frequent(runs):
    """Returns the runs of the class that most of them have."""
    cls = statistics.mode(r["class"] for r in runs)
    return [r for r in runs if r["class"] == cls]


def write_sizes(path, runs):
    """Writes the medians of all rounds: size, Gb/s, M/s, and both of the floor."""
    with open(path, "w", encoding="utf-8") as f:
        for size in sorted({r["size"] for r in runs}):
            group = [r for r in runs if r["size"] == size]
            keys = ("gbps", "mops", "floor_gbps", "floor_mops")
            f.write(" ".join([str(size)] + [f"{statistics.median(r[k] for r in group):.4f}"
                                            for k in keys]) + "\n")


def main():
    runs_path, counts_path, folder, machine, version, seconds = sys.argv[1:]
    with open(runs_path, encoding="utf-8") as f:
        runs = [json.loads(line) for line in f]
    with open(counts_path, encoding="utf-8") as f:
        counts = {name: float(n) for name, n in (line.split() for line in f)}
    for run in runs:
        run["class"] = class_of(run["frame_floor_ns"])
    shown = frequent([r for r in runs if r["name"].startswith(("latency-", "size-"))])
    for t in ("iwarp", "falcon"):
        group = [r for r in shown if r["name"] == "latency-" + t]
        base = os.path.join(folder, "latency-" + t)
        write_distribution(base + ".dat", [r["histogram"] for r in group])
        write_distribution(base + "-floor.dat", [r["floor_histogram"] for r in group])
        write_sizes(os.path.join(folder, f"size-{t}.dat"),
                    [r for r in shown if r["name"] == "size-" + t])
    for run in runs:
        run.pop("histogram", None)
        run.pop("floor_histogram", None)
    rows = list(rows_of(runs)) + list(count_rows(counts))
    date = time.strftime("%Y-%m-%d", time.gmtime())
    head = (f"{date}, {machine}, version {version}, {seconds} s; "
            f"pictures: 64 B floor {CLASSES[shown[0]['class']]} ns")
    write_table(os.path.join(folder, "report.md"), head, rows)
    with open(os.path.join(folder, "report.json"), "w", encoding="utf-8") as f:
        json.dump({"date": date, "machine": machine, "version": version, "rows": rows,
                   "instructions": counts, "runs": runs}, f, indent=1)
        f.write("\n")


main()

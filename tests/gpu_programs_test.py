#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/gpu_*.py say of sizes and results, made up here: no GPU, no torch is needed."""

import math
import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "benchmarks"))
import gpu_ballast  # noqa: E402
import gpu_graphs  # noqa: E402
import gpu_runs  # noqa: E402

LIMIT = 2 * 10**9


def verdict_of(line):
    """The line without its padding, and its verdict."""
    text, _, verdict = line.strip().rpartition(" ")
    return text.strip(), verdict


def run_of(taken=LIMIT, last_loss=0.5, steps=gpu_ballast.STEPS):
    return {"losses": [1.0] * (steps - 1) + [last_loss], "gpu": {"taken_bytes": taken}}


class GpuRunsTest(unittest.TestCase):
    def test_sizes_are_bytes_or_have_a_unit(self):
        sizes = {"1048576": 2**20, "0": 0, "7kB": 7000, "1.8GB": 1800000000, "3MB": 3 * 10**6,
                 "512MiB": 2**29, "0.5KiB": 512, "1.5GiB": 3 * 2**29}
        self.assertEqual({text: gpu_runs.parse_bytes(text) for text in sizes}, sizes)

    def test_what_is_no_size_is_a_value_error(self):
        for text in ["", "GB", "2 giga", "2TB", "1.5", "inf", "infGB", "-infGB", "nanGB", "1e308GB",
                     "-1", "-1GB", "-0.0000000001GB"]:
            with self.subTest(text), self.assertRaises(ValueError):
                gpu_runs.parse_bytes(text)

    def test_verdicts_stand_below_each_other(self):
        self.assertEqual(gpu_runs.goal_line("short", True), "  short" + 76 * " " + "met")
        self.assertEqual(gpu_runs.goal_line("x" * 80, False), "  " + "x" * 80 + " missed")

    def test_of_what_a_program_said_the_end_is_kept_in_a_line(self):
        said = "Traceback:\n    run(a + b)\n        ~~^~~\nValueError:  no\n"
        self.assertEqual(gpu_runs.in_a_line(said), "Traceback: run(a + b) ValueError: no")
        self.assertEqual(gpu_runs.in_a_line(said, most=14), "ValueError: no")
        self.assertEqual(gpu_runs.in_a_line(""), "")


class GpuGraphsTest(unittest.TestCase):
    def test_graphs_are_no_slower_but_for_noise(self):
        self.assertEqual(verdict_of(gpu_graphs.goal("vgg16:32", 0.99)), (
            "vgg16:32: 0.99 times as fast by graphs, at least 1 within 1 %", "met"))
        self.assertEqual(verdict_of(gpu_graphs.goal("vgg16:32", 0.98))[1], "missed")

    def test_where_launches_take_most_of_the_time_they_are_faster(self):
        self.assertEqual(verdict_of(gpu_graphs.goal("preresnet164:16", 1.19)), (
            "preresnet164:16: 1.19 times as fast by graphs, at least 1.2", "missed"))
        self.assertEqual(verdict_of(gpu_graphs.goal("preresnet164:16", 1.2))[1], "met")

    def test_goals_are_of_networks_that_there_are(self):
        self.assertLessEqual(set(gpu_graphs.LEAST_OF), set(gpu_graphs.NETWORKS))


class GpuBallastTest(unittest.TestCase):
    def test_all_steps_within_the_limit_end_well(self):
        self.assertEqual(gpu_ballast.why_not_well(run_of(), LIMIT, free=LIMIT), "")

    def test_a_run_that_failed_says_why(self):
        why = gpu_ballast.why_not_well({"error": "out of memory"}, LIMIT, free=LIMIT + 1)
        self.assertEqual(why, "out of memory")

    def test_more_free_than_the_limit_shows_nothing(self):
        why = gpu_ballast.why_not_well(run_of(), LIMIT, free=LIMIT + 1)
        self.assertEqual(why, "more than the limit was free")

    def test_steps_that_are_missing_are_counted(self):
        why = gpu_ballast.why_not_well(run_of(steps=23), LIMIT, free=LIMIT)
        self.assertEqual(why, "23 of 24 steps")

    def test_one_loss_that_is_no_number_is_enough(self):
        for loss in [None, math.nan, math.inf, -math.inf]:
            why = gpu_ballast.why_not_well(run_of(last_loss=loss), LIMIT, free=LIMIT)
            self.assertEqual(why, "a loss is no number", loss)

    def test_a_byte_beyond_the_limit_is_too_much(self):
        why = gpu_ballast.why_not_well(run_of(taken=LIMIT + 1), LIMIT, free=LIMIT)
        self.assertEqual(why, "it took more than the limit")


if __name__ == "__main__":
    unittest.main()

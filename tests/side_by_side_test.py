#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""What benchmarks/side_by_side.py says of results, made up here: no GPU and no torch is needed."""

import os
import sys
import unittest

sys.dont_write_bytecode = True
sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "benchmarks"))
import side_by_side  # noqa: E402


def run_of(ms, predicted_ms=None, peak=2**30):
    return {"ms": ms, "peak": peak, "taken": peak + 2**29, "predicted_ms": predicted_ms}


def goals_of(case, results):
    return dict(side_by_side.goals_of(case, results))


class SideBySideTest(unittest.TestCase):
    def test_no_limit_is_the_mean_of_both_runs(self):
        results = {"plimsoll": run_of(34), "plimsoll again": run_of(36)}
        self.assertEqual(side_by_side.unlimited_ms(results), 35)

    def test_a_run_that_failed_is_not_part_of_the_mean(self):
        results = {"plimsoll": run_of(34), "plimsoll again": {"error": "no answer in 300 s"}}
        self.assertEqual(side_by_side.unlimited_ms(results), 34)
        self.assertIsNone(side_by_side.unlimited_ms({"plimsoll": {"error": "none"}}))

    def test_networks_for_images_are_beside_channels_last(self):
        results = {"plimsoll": run_of(10), "eager": run_of(30), "channels_last": run_of(11.9)}
        self.assertEqual(goals_of("resnet50", results),
                         {"beside channels_last: 1.19 times as fast, at least 1.2": False})

    def test_text_has_no_layout(self):
        modes = ["eager", "channels_last", "offload"]
        self.assertEqual(side_by_side.modes_of("gpt2-medium", modes), ["eager", "offload"])
        self.assertEqual(side_by_side.modes_of("resnet50", ["channels_last"]), ["channels_last"])
        results = {"plimsoll": run_of(10), "eager": run_of(8)}
        self.assertEqual(goals_of("gpt2-medium-bf16", results),
                         {"beside eager: 0.80 times as fast, at least 0.8": True})

    def test_limits_have_two_goals_each(self):
        results = {"plimsoll": run_of(99), "plimsoll at 60 %": run_of(105, 100),
                   "plimsoll at 30 %": run_of(118, 112), "plimsoll again": run_of(101)}
        self.assertEqual(goals_of("resnet152", results), {
            "at 60 %: +5.0 % on no limit, at most 5 %": True,
            "at 60 %: +5.0 % off the prediction, within 5 %": True,
            "at 30 %: +18.0 % on no limit, at most 17 %": False,
            "at 30 %: +5.4 % off the prediction, within 5 %": False,
        })

    def test_measured_faster_than_predicted_is_off_as_well(self):
        text, met = side_by_side.prediction_goal("at 50 %", run_of(90, 100))
        self.assertEqual((text, met), ("at 50 %: -10.0 % off the prediction, within 5 %", False))

    def test_the_memory_of_pytorch_has_goals(self):
        results = {"plimsoll": run_of(40), "checkpoint1": run_of(63), "offload": run_of(300),
                   "plimsoll as checkpoint1": run_of(45, 44), "plimsoll as offload": run_of(50, 49)}
        self.assertEqual(list(goals_of("resnet50", results).values()), [True, True, False, True])
        self.assertEqual(list(goals_of("densenet201", results).values()), [True, True])
        self.assertEqual(goals_of("vgg16", results), {})

    def test_what_was_tried_and_failed_is_missed(self):
        failed = {"error": "out of memory"}
        results = {"plimsoll": run_of(40), "channels_last": failed, "plimsoll at 50 %": failed,
                   "checkpoint1": {"error": "no answer in 300 s"}}
        goals = goals_of("resnet50", results)
        self.assertEqual(len(goals), 5)
        self.assertFalse(any(goals.values()))

    def test_without_a_plan_the_prediction_is_missed(self):
        results = {"plimsoll": run_of(40), "plimsoll at 60 %": run_of(41)}
        self.assertEqual(list(goals_of("resnet50", results).values()), [True, False])

    def test_a_summary_has_a_row_for_each_result_and_a_verdict_for_each_goal(self):
        results = {"plimsoll": run_of(34), "eager": run_of(60), "channels_last": run_of(42),
                   "offload": run_of(600), "plimsoll at 60 %": run_of(36, 35.5),
                   "plimsoll at 50 %": {"error": "no answer in 300 s"},
                   "plimsoll as offload": run_of(50, 49), "plimsoll again": run_of(36)}
        lines = side_by_side.summary_of("resnet50", results)
        self.assertEqual(lines[1], "resnet50, batch 128, fp32; Plimsoll without a limit: "
                                   "35.00 ms (34.00 and 36.00)")
        rows = lines[3:lines.index("goals")]
        self.assertEqual([row.split() for row in rows], [
            ["beside", "eager", "35.00", "60.00", "1.71"],
            ["beside", "channels_last", "35.00", "42.00", "1.20"],
            ["at", "60", "%", "36.00", "35.50", "+1.4", "%", "+2.9", "%"],
            ["at", "50", "%", "failed"],
            ["as", "offload", "50.00", "49.00", "+2.0", "%", "+42.9", "%", "600.00", "12.00"],
        ])
        verdicts = [line.split()[-1] for line in lines[lines.index("goals") + 1:]]
        self.assertEqual(verdicts, ["met", "met", "met", "missed", "missed", "met", "met"])

    def test_a_case_where_all_failed_has_a_summary(self):
        failed = {"error": "no GPU"}
        lines = side_by_side.summary_of("vgg16", {"plimsoll": failed, "channels_last": failed})
        self.assertIn("no result", lines[1])
        self.assertTrue(lines[-1].endswith("missed"))

    def test_a_line_says_what_was_predicted_and_what_the_limit_costs(self):
        line = side_by_side.line_of("resnet50", "plimsoll at 60 %", run_of(36, 35), unlimited=32)
        self.assertTrue(line.endswith("predicted 35.00 ms (+2.9 %)  +12.5 % on no limit"), line)

    def test_goals_are_of_cases_and_modes_that_there_are(self):
        self.assertLessEqual(set(side_by_side.GOALS), set(side_by_side.CASES))
        for goals in side_by_side.GOALS.values():
            self.assertLessEqual(set(goals) - {"free", "limits"}, set(side_by_side.SAVING_MODES))


if __name__ == "__main__":
    unittest.main()

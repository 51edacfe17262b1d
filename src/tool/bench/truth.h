/* bench/truth.h: kvasir-bench truth RECORDING_DIR...: is the index right?
 *
 * Replays recordings of real workers (run.json, timeline.jsonl; the format is described with the recordings) through the
 * engine's decoder and both halves of the index, prompts in flight included, in the order of the recording's own clock.
 * Before each request the hit is predicted and held against what the worker reported. A line a recording:
 *
 *   NAME requests=N exact=M share=S
 *
 * N leaves out the misses that no reader of the events can avoid; each is excused by a rule on what was on the wire, never
 * by its name. With -v every miss is listed with both numbers and its excuse, and the excused are counted by kind.
 * Exit code: 0 all exact, 1 a miss without an excuse, 2 a recording that cannot be read, or none at all; a folder without
 * a recording among others is passed over. */
#ifndef BENCH_TRUTH_H
#define BENCH_TRUTH_H

int bench_truth(int argc, char **argv);

#endif

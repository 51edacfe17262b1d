/* The rows of gate/metric.h, expanded once. */
#include "gate/metric.h"

const struct obs_def gate_metric_defs[GATE_M_COUNT] = { GATE_METRICS(OBS_ROW_DEF) };

/* memory.h: what the processes below us hold in memory. runs in: bench */
#pragma once

#include <stdbool.h>

/* Every process of the machine that descends from us; `sleep` is the sandboxed command. Proportional set sizes. */
struct idle {
    long ours_kb, worker_kb;
    int processes, workers;
    bool hidden; /* a process would not be read */
};

/* Walks /proc once. */
struct idle measure_idle(void);

/* launch.c: see launch.h. runs in: controller, launcher */
#include "wire/launch.h"

void launch_put_figures(struct wire_message *m, const struct launch_figures *f) {
    const uint64_t longs[] = {f->memory, f->processes, f->cpu_us, f->disk, f->files, f->wall_us};
    for (size_t i = 0; i < ELEMENTS(longs); i++)
        wire_put_u64(m, longs[i]);
}

void launch_get_figures(struct wire_message *m, struct launch_figures *f) {
    uint64_t *longs[] = {&f->memory, &f->processes, &f->cpu_us, &f->disk, &f->files, &f->wall_us};
    for (size_t i = 0; i < ELEMENTS(longs); i++)
        *longs[i] = wire_get_u64(m);
}

void launch_put_end(struct wire_message *m, const struct launch_end *e) {
    const uint32_t words[] = {e->reason, e->how, e->value, e->init_status, e->disk_full};
    const uint64_t longs[] = {e->oom_kills, e->process_denials, e->memory_peak, e->processes_peak,
                              e->cpu_us,    e->wall_us,         e->disk_peak,   e->files_peak};
    for (size_t i = 0; i < ELEMENTS(words); i++)
        wire_put_u32(m, words[i]);
    for (size_t i = 0; i < ELEMENTS(longs); i++)
        wire_put_u64(m, longs[i]);
    wire_put_text(m, e->detail);
}

void launch_get_end(struct wire_message *m, struct launch_end *e) {
    uint32_t *words[] = {&e->reason, &e->how, &e->value, &e->init_status, &e->disk_full};
    uint64_t *longs[] = {&e->oom_kills, &e->process_denials, &e->memory_peak, &e->processes_peak,
                         &e->cpu_us,    &e->wall_us,         &e->disk_peak,   &e->files_peak};
    for (size_t i = 0; i < ELEMENTS(words); i++)
        *words[i] = wire_get_u32(m);
    for (size_t i = 0; i < ELEMENTS(longs); i++)
        *longs[i] = wire_get_u64(m);
    wire_get_text(m, e->detail, sizeof(e->detail));
    if (e->reason >= LAUNCH_REASON_N || e->how >= LAUNCH_HOW_N || e->disk_full > 3)
        m->broken = 1;
}

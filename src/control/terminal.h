/* terminal.h: the user's terminal while a worker has one of its own (-t).
 *
 * The host's terminal is never given to the worker: it holds the slave of a terminal made inside, we hold the master
 * and pass bytes between the two. Ours is in raw mode meanwhile, and is put back on every way out, also when we crash.
 * runs in: controller */
#pragma once

/* Puts the terminal `fd` in raw mode; not a terminal: does nothing. */
void terminal_raw(int fd);

/* Puts it back. Fine when it is not raw. */
void terminal_restore(void);

/* test/unit/io/kit.h: a loop per test, and waiting with a limit. */
#ifndef KIT_H
#define KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "io/loop.h"

extern struct io_loop *kit_loop;
int kit_setup(void **state);
int kit_teardown(void **state);
void kit_run_us(int64_t us);
void kit_until_n(const int *counter, int n);    /* two seconds at most */

#define TEST(fn) cmocka_unit_test_setup_teardown(fn, kit_setup, kit_teardown)

#endif

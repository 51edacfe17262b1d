/* day.c: days since 1970-01-01 to year, month, day by the proleptic Gregorian calendar, counted from 1 March 0000. */
#include "text/day.h"

enum { DAY_S = 86400, NEAR_S = 30, ERA_DAYS = 146097, DAYS_TO_1970 = 719468 };

static int64_t floor_div(int64_t a, int64_t b) { return a / b - (a % b < 0); }

static bool leap(int64_t y) { return (y % 4 == 0 && y % 100 != 0) || y % 400 == 0; }

struct jinja_time text_day_of(int64_t unix_s)
{
	static const int BEFORE[] = { 0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334 };
	int64_t days = floor_div(unix_s, DAY_S), rest = unix_s - days * DAY_S, z = days + DAYS_TO_1970;
	int64_t era = floor_div(z, ERA_DAYS), doe = z - era * ERA_DAYS;
	int64_t yoe = (doe - doe / 1460 + doe / 36524 - doe / 146096) / 365, doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
	int64_t mp = (5 * doy + 2) / 153, day = doy - (153 * mp + 2) / 5 + 1, month = mp < 10 ? mp + 3 : mp - 9;
	int64_t year = yoe + era * 400 + (month <= 2), weekday = (days % 7 + 11) % 7;
	return (struct jinja_time){ (int)year, (int)month, (int)day, (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60), (int)weekday,
		BEFORE[month - 1] + (int)day + (month > 2 && leap(year)) };
}

bool text_day_is_near_its_end(int64_t unix_s)
{
	int64_t rest = unix_s - floor_div(unix_s, DAY_S) * DAY_S;
	return rest < NEAR_S || rest >= DAY_S - NEAR_S;
}

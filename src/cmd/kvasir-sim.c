/* kvasir-sim: a fleet of vLLM-like workers in one process. Wiring only: see tool/sim. */
#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "io/fds.h"
#include "sim/worker.h"

static void on_signal(void *arg, int signum)
{
	(void)signum;
	io_loop_stop(arg);
}

static void print_help(void)
{
	struct buf b;
	buf_init(&b, 64 << 10);
	sim_options_help(&b);
	fwrite(buf_str(&b).p, 1, b.n, stdout);
	buf_done(&b);
}

static void print_fleet(const struct sim_options *o)
{
	for (uint32_t i = 0; i < o->workers; i++) {
		printf("worker=%u url=http://%s:%u model=%s profile=%s time_scale=%g", i, o->host, o->port + i, o->model, o->profile->name,
			o->time_scale);
		for (uint32_t r = 0; r < o->ranks && !o->no_events; r++)
			printf(" events%u=tcp://%s:%u replay%u=tcp://%s:%u", r, o->host, o->events_port + i * o->ranks + r, r, o->host,
				o->replay_port + i * o->ranks + r);
		printf("\n");
	}
	printf("ready\n");
	fflush(stdout);
}

static int run(const struct sim_options *o)
{
	struct sim_fleet *fleet;
	char why[256] = "";
	struct io_loop *loop = io_loop_new();
	if (sim_fleet_start(loop, o, &fleet, why) != ERR_OK) {
		fprintf(stderr, "kvasir-sim: %s\n", why);
		io_loop_free(loop);
		return 1;
	}
	io_signal(loop, SIGTERM, on_signal, loop);
	io_signal(loop, SIGINT, on_signal, loop);
	print_fleet(o);
	io_loop_run(loop);
	sim_fleet_free(fleet);
	io_signals_close(loop);
	io_loop_free(loop);
	return 0;
}

int main(int argc, char **argv)
{
	struct sim_options o;
	char why[256];
	io_fds_fill();
	for (int i = 1; i < argc; i++) {
		if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
			print_help();
			return 0;
		}
		if (!strcmp(argv[i], "--version")) {
			printf("kvasir-sim %s\n", KVASIR_VERSION);
			return 0;
		}
	}
	int code = 2;
	if (sim_options_parse(argc, argv, &o, why))
		code = run(&o);
	else
		fprintf(stderr, "kvasir-sim: %s (kvasir-sim --help lists the options)\n", why);
	sim_options_done(&o);
	return code;
}

/* conf/conf_priv.h: shared insides of the readers: what is being built, and where a fault is. */
#ifndef CONF_PRIV_H
#define CONF_PRIV_H

#include "conf/conf.h"
#include "wire/yaml.h"

struct conf_draft {
	struct conf *c;                    /* being built; texts go to c->arena */
	struct conf_faults *faults;
	VEC(struct conf_pool) pools;
	bool has_gateway;
	bool careful;                      /* see conf_sources */
	struct str file;                   /* being read */
	unsigned gateway_line; struct str gateway_file;
};

/* Sets an option from a text; what it names on the disk is looked at too. NULL when good, else the fault. */
const char *conf_option_take(struct conf_draft *d, const struct conf_option *row, struct str text);
/* Every object of a file's text. */
void conf_objects_read(struct conf_draft *d, struct str file, struct str text);
/* spec of a WorkerPool. */
void conf_pool_read(struct conf_draft *d, struct str name, const struct yaml_node *spec, struct str path);
/* spec of the Gateway: option rows by their dotted keys. */
void conf_gateway_read(struct conf_draft *d, const struct yaml_node *spec, struct str path);

static inline struct conf_place conf_at(const struct conf_draft *d, struct yaml_pos pos) { return (struct conf_place){ d->file, pos.line, pos.col }; }

/* One member of a mapping: its name and how it is read. */
struct conf_field {
	const char *key;
	void (*read)(struct conf_draft *d, const struct yaml_node *v, struct str path, void *into);
};
/* Reads a mapping member by member; unknown members and other kinds are faults. */
void conf_map_read(struct conf_draft *d, const struct yaml_node *map, struct str path, const struct conf_field *fields, size_t n, void *into);
/* A text scalar (numbers and the like are taken as written); NULL slice and a fault for anything else. */
struct str conf_text_read(struct conf_draft *d, const struct yaml_node *v, struct str path);

#endif

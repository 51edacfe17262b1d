/* base/list.h: an intrusive doubly linked list. A head is a `struct list` initialised with list_init; a node is a
 * `struct list` member, found again with container_of. A node not in a list points at itself after list_init. */
#ifndef BASE_LIST_H
#define BASE_LIST_H

#include "base/base.h"

struct list {
	struct list *next, *prev;
};

static inline void list_init(struct list *l) { l->next = l->prev = l; }
static inline bool list_empty(const struct list *l) { return l->next == l; }
static inline void list_add_tail(struct list *head, struct list *node)
{
	node->prev = head->prev;
	node->next = head;
	head->prev->next = node;
	head->prev = node;
}
static inline void list_add_head(struct list *head, struct list *node) { list_add_tail(head->next, node); }
static inline void list_del(struct list *node)
{
	node->prev->next = node->next;
	node->next->prev = node->prev;
	list_init(node);
}

#define LIST_FOR(head, it) for (struct list *it = (head)->next; it != (head); it = it->next)
/* `it` may be deleted inside the loop. */
#define LIST_FOR_SAFE(head, it) \
	for (struct list *it = (head)->next, *it##_next = it->next; it != (head); it = it##_next, it##_next = it->next)

#endif

/* io/addr.h: addresses and names. `struct io_addr` is a resolved IPv4/IPv6 address with port, a plain value.
 * io_resolve() asks getaddrinfo on the thread pool, never on the loop; results are cached for 5 s per name. */
#ifndef IO_ADDR_H
#define IO_ADDR_H

#include "io/loop.h"

struct io_addr {
	_Alignas(8) unsigned char raw[28];   /* a sockaddr_in or sockaddr_in6 */
	uint8_t len;                         /* 0 = none */
};

/* "127.0.0.1:80", "[::1]:80": literals only; ERR_SYNTAX otherwise. */
must_use enum err io_addr_parse(struct str s, struct io_addr *ret_addr);
must_use enum err io_addr_of_host(struct str host, uint16_t port, struct io_addr *ret_addr);   /* host literal without brackets */
struct str io_addr_print(const struct io_addr *a, char out[64]);
bool io_addr_is_loopback(const struct io_addr *a);
uint16_t io_addr_port(const struct io_addr *a);
/* fn runs on the loop exactly once, never from inside this call; ERR_CONNECT when the name does not resolve. */
void io_resolve(struct io_loop *l, struct str host, uint16_t port, void (*fn)(void *arg, enum err e, struct io_addr a), void *arg);

#endif

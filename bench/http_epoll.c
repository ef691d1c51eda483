/* The floor of an HTTP server: epoll, read, look for the end of the head and for Content-Length, write a
 * constant. It checks nothing. Prints its port; ends at the end of its input. */
#define _GNU_SOURCE
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char answer[] =
    "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 78\r\n\r\n"
    "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":{\"content\":[{\"type\":\"text\",\"text\":\"hello\"}]}}";

enum { kMaxRequest = 128 << 10 };

struct connection {
  int fd;
  size_t have;
  char buffer[kMaxRequest];
};

static size_t request_length(const char* bytes, size_t size) {
  const char* head = memmem(bytes, size, "\r\n\r\n", 4);
  if (!head) return 0;
  size_t length = 0;
  for (const char* line = bytes; line < head; ++line) {
    if (*line == '\n' && strncasecmp(line + 1, "content-length:", 15) == 0)
      length = strtoul(line + 16, NULL, 10);
  }
  const size_t whole = (size_t)(head - bytes) + 4 + length;
  return size >= whole ? whole : 0;
}

static int serve(struct connection* c) {
  const ssize_t n = recv(c->fd, c->buffer + c->have, sizeof c->buffer - c->have, 0);
  if (n <= 0) return 0;
  c->have += (size_t)n;
  const size_t whole = request_length(c->buffer, c->have);
  if (whole == 0) return c->have < sizeof c->buffer;
  memmove(c->buffer, c->buffer + whole, c->have - whole);
  c->have -= whole;
  return send(c->fd, answer, sizeof answer - 1, MSG_NOSIGNAL) > 0;
}

int main(void) {
  const int listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};
  socklen_t size = sizeof address;
  const int on = 1;
  setsockopt(listener, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  if (bind(listener, (struct sockaddr*)&address, size) != 0 || listen(listener, 1024) != 0) return 1;
  getsockname(listener, (struct sockaddr*)&address, &size);
  printf("%d\n", ntohs(address.sin_port));
  fflush(stdout);

  const int epoll = epoll_create1(EPOLL_CLOEXEC);
  struct connection own[2] = {{.fd = listener}, {.fd = STDIN_FILENO}};
  for (int i = 0; i < 2; ++i) {
    struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = &own[i]}};
    epoll_ctl(epoll, EPOLL_CTL_ADD, own[i].fd, &event);
  }
  struct epoll_event events[256];
  for (;;) {
    const int ready = epoll_wait(epoll, events, 256, -1);
    for (int i = 0; i < ready; ++i) {
      struct connection* c = events[i].data.ptr;
      if (c == &own[1]) return 0;
      if (c == &own[0]) {
        struct connection* fresh = calloc(1, sizeof *fresh);
        fresh->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = fresh}};
        epoll_ctl(epoll, EPOLL_CTL_ADD, fresh->fd, &event);
      } else if (!serve(c)) {
        close(c->fd);
        free(c);
      }
    }
  }
}

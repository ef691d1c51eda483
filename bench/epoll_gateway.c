/* The floor of a gateway: HTTP in front, one child on pipes behind, epoll, and nothing between them but
 * another id. It checks nothing, keeps no session and knows no tool by name. Prints its port; ends at the end
 * of its input.
 *
 *   epoll_gateway COMMAND ARG... */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

enum { kPending = 1 << 16, kPiece = 64 << 10 };

struct buffer {
  char* data;
  size_t size, room;
};

struct connection {
  int fd;
  struct buffer in;
};

/* Whose call went to the child under which number, and the id it came with. */
static struct {
  struct connection* from;
  char id[40];
  size_t id_size;
} pending[kPending];
static unsigned next_call;
static struct buffer to_child, from_child;
static int child_in, child_out;

static void put(struct buffer* b, const char* bytes, size_t size) {
  if (b->size + size > b->room) {
    b->room = 2 * (b->size + size) + kPiece;
    b->data = realloc(b->data, b->room);
    if (!b->data) _exit(1);
  }
  memcpy(b->data + b->size, bytes, size);
  b->size += size;
}

static void drop(struct buffer* b, size_t size) {
  memmove(b->data, b->data + size, b->size - size);
  b->size -= size;
}

static ssize_t fill(struct buffer* b, int fd) {
  static char piece[1 << 20];
  const ssize_t n = read(fd, piece, sizeof piece);
  if (n > 0) put(b, piece, (size_t)n);
  return n;
}

static void write_all(int fd, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t n = write(fd, bytes, size);
    if (n <= 0) return;
    bytes += n;
    size -= (size_t)n;
  }
}

/* The value behind the first "id": of a message. */
static char* find_id(char* text, size_t size, size_t* length) {
  char* key = memmem(text, size, "\"id\":", 5);
  if (!key) return NULL;
  char* value = key + 5;
  char* end = value;
  while (end < text + size && *end != ',' && *end != '}') ++end;
  *length = (size_t)(end - value);
  return value;
}

static void pass_on(struct connection* c, char* body, size_t size) {
  size_t length = 0;
  char* id = find_id(body, size, &length);
  static const char accepted[] = "HTTP/1.1 202 Accepted\r\nContent-Length: 0\r\n\r\n";
  if (!id || length >= sizeof pending[0].id) {
    put(&to_child, body, size);
    put(&to_child, "\n", 1);
    write_all(c->fd, accepted, sizeof accepted - 1);
    return;
  }
  const unsigned number = next_call++ % kPending;
  pending[number].from = c;
  pending[number].id_size = length;
  memcpy(pending[number].id, id, length);
  char own[16];
  const int own_size = snprintf(own, sizeof own, "%u", number);
  put(&to_child, body, (size_t)(id - body));
  put(&to_child, own, (size_t)own_size);
  put(&to_child, id + length, size - (size_t)(id - body) - length);
  put(&to_child, "\n", 1);
}

static int take_requests(struct connection* c) {
  if (fill(&c->in, c->fd) <= 0) return 0;
  for (;;) {
    char* head = c->in.size ? memmem(c->in.data, c->in.size, "\r\n\r\n", 4) : NULL;
    if (!head) return 1;
    size_t length = 0;
    for (char* line = c->in.data; line < head; ++line) {
      if (*line == '\n' && strncasecmp(line + 1, "content-length:", 15) == 0)
        length = strtoul(line + 16, NULL, 10);
    }
    const size_t whole = (size_t)(head - c->in.data) + 4 + length;
    if (c->in.size < whole) return 1;
    pass_on(c, head + 4, length);
    drop(&c->in, whole);
  }
}

static void answer(char* line, size_t size) {
  size_t length = 0;
  char* id = find_id(line, size, &length);
  if (!id) return;
  const unsigned number = (unsigned)strtoul(id, NULL, 10) % kPending;
  static struct buffer out;
  char head[128];
  const int head_size = snprintf(
      head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %zu\r\n\r\n",
      size - length + pending[number].id_size);
  out.size = 0;
  put(&out, head, (size_t)head_size);
  put(&out, line, (size_t)(id - line));
  put(&out, pending[number].id, pending[number].id_size);
  put(&out, id + length, size - (size_t)(id - line) - length);
  write_all(pending[number].from->fd, out.data, out.size);
}

static int take_answers(void) {
  if (fill(&from_child, child_out) <= 0) return 0;
  size_t done = 0;
  char* newline;
  while ((newline = memchr(from_child.data + done, '\n', from_child.size - done))) {
    answer(from_child.data + done, (size_t)(newline - from_child.data) - done);
    done = (size_t)(newline - from_child.data) + 1;
  }
  drop(&from_child, done);
  return 1;
}

static void start_child(char** command) {
  int in[2], out[2];
  if (pipe2(in, O_CLOEXEC) != 0 || pipe2(out, O_CLOEXEC) != 0) _exit(1);
  if (fork() == 0) {
    dup2(in[0], 0);
    dup2(out[1], 1);
    execvp(command[0], command);
    _exit(127);
  }
  child_in = in[1];
  child_out = out[0];
  close(in[0]);
  close(out[1]);
}

static void watch(int epoll, struct connection* c) {
  struct epoll_event event = {.events = EPOLLIN, .data = {.ptr = c}};
  epoll_ctl(epoll, EPOLL_CTL_ADD, c->fd, &event);
}

int main(int argc, char** argv) {
  if (argc < 2) return 2;
  signal(SIGPIPE, SIG_IGN);
  start_child(argv + 1);
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
  struct connection own[3] = {{.fd = listener}, {.fd = STDIN_FILENO}, {.fd = child_out}};
  for (int i = 0; i < 3; ++i) watch(epoll, &own[i]);
  struct epoll_event events[256];
  for (;;) {
    const int ready = epoll_wait(epoll, events, 256, -1);
    for (int i = 0; i < ready; ++i) {
      struct connection* c = events[i].data.ptr;
      if (c == &own[1]) return 0;
      if (c == &own[2]) {
        if (!take_answers()) return 1;
      } else if (c == &own[0]) {
        struct connection* fresh = calloc(1, sizeof *fresh);
        fresh->fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        watch(epoll, fresh);
      } else if (!take_requests(c)) {
        close(c->fd); /* and its few bytes stay ours: a call of it may be under way */
      }
    }
    write_all(child_in, to_child.data, to_child.size);
    to_child.size = 0;
  }
}

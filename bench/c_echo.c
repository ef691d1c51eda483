/* The floor: an MCP-like echo on stdin and stdout in plain C. One read, many lines, one write; no tree, no
 * validation, only a walk over the keys it needs. Everything else is measured against this.
 *
 *   c_echo [--core N]        runs on that core, for clients that cannot pin their children
 */
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { kRead = 64 << 10, kFlushAt = 1 << 20 };

typedef struct {
  const char* data;
  size_t size;
} Slice;

typedef struct {
  char* data;
  size_t size;
  size_t capacity;
} Buffer;

static void make_room(Buffer* buffer, size_t more) {
  if (buffer->size + more <= buffer->capacity) return;
  size_t capacity = buffer->capacity ? buffer->capacity : 4 * kRead;
  while (capacity < buffer->size + more) capacity *= 2;
  buffer->data = realloc(buffer->data, capacity);
  if (!buffer->data) _exit(1);
  buffer->capacity = capacity;
}

static void put(Buffer* buffer, Slice slice) {
  make_room(buffer, slice.size);
  memcpy(buffer->data + buffer->size, slice.data, slice.size);
  buffer->size += slice.size;
}

static Slice text(const char* literal) {
  return (Slice){literal, strlen(literal)};
}

static bool equal(Slice a, Slice b) {
  return a.size == b.size && memcmp(a.data, b.data, a.size) == 0;
}

static const char* skip_space(const char* p, const char* end) {
  while (p < end && (*p == ' ' || *p == '\t' || *p == '\r')) ++p;
  return p;
}

/* From an opening quote to behind the closing one. */
static const char* skip_string(const char* p, const char* end) {
  const char* const first = ++p;
  while ((p = memchr(p, '"', (size_t)(end - p)))) {
    const char* slashes = p;
    while (slashes > first && slashes[-1] == '\\') --slashes;
    if ((p - slashes) % 2 == 0) return p + 1;
    ++p;
  }
  return end;
}

static const char* skip_container(const char* p, const char* end) {
  int depth = 0;
  while (p < end) {
    if (*p == '"') {
      p = skip_string(p, end);
      continue;
    }
    if (*p == '{' || *p == '[') ++depth;
    if (*p == '}' || *p == ']') --depth;
    ++p;
    if (depth == 0) break;
  }
  return p;
}

static const char* skip_value(const char* p, const char* end) {
  if (p < end && *p == '"') return skip_string(p, end);
  if (p < end && (*p == '{' || *p == '[')) return skip_container(p, end);
  while (p < end && *p != ',' && *p != '}' && *p != ']') ++p;
  return p;
}

/* The values of `count` keys of an object; those that are not there stay empty. */
static void members(Slice object, int count, const Slice* keys, Slice* values) {
  const char* const end = object.data + object.size;
  const char* p = skip_space(object.data, end);
  memset(values, 0, (size_t)count * sizeof *values);
  if (p == end || *p++ != '{') return;
  while (true) {
    p = skip_space(p, end);
    if (p < end && *p == ',') p = skip_space(p + 1, end);
    if (p == end || *p != '"') return;
    const char* const key_end = skip_string(p, end);
    const Slice key = {p + 1, (size_t)(key_end - p) - 2};
    p = skip_space(key_end, end);
    if (p == end || *p++ != ':') return;
    p = skip_space(p, end);
    const char* const value = p;
    p = skip_value(p, end);
    for (int i = 0; i < count; ++i) {
      if (equal(key, keys[i])) values[i] = (Slice){value, (size_t)(p - value)};
    }
  }
}

static Slice member(Slice object, const char* name) {
  const Slice key = text(name);
  Slice value;
  members(object, 1, &key, &value);
  return value;
}

static void answer_call(Buffer* out, Slice params) {
  const Slice arguments = member(params, "arguments");
  const Slice message = member(arguments, "message");
  const Slice bytes = message.size ? (Slice){0} : member(arguments, "bytes");
  put(out, text(",\"result\":{\"content\":[{\"type\":\"text\",\"text\":"));
  if (bytes.size) { /* as many as asked for */
    const size_t count = strtoul(bytes.data, NULL, 10);
    make_room(out, count + 2);
    out->data[out->size++] = '"';
    memset(out->data + out->size, 'x', count);
    out->size += count;
    put(out, text("\"}]}}\n"));
    return;
  }
  put(out, message.size ? message : text("\"\""));
  put(out, text("}]}}\n"));
}

static void answer_initialize(Buffer* out, Slice params) {
  const Slice version = member(params, "protocolVersion");
  put(out, text(",\"result\":{\"protocolVersion\":"));
  put(out, version.size ? version : text("\"2025-06-18\""));
  put(out,
      text(",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"c_echo\",\"version\":\"1\"}}}\n"));
}

static void answer(Slice line, Buffer* out) {
  const Slice keys[] = {text("id"), text("method"), text("params")};
  Slice values[3];
  members(line, 3, keys, values);
  const Slice id = values[0], method = values[1], params = values[2];
  if (id.size == 0 || method.size == 0) return; /* a notification */
  put(out, text("{\"jsonrpc\":\"2.0\",\"id\":"));
  put(out, id);
  if (equal(method, text("\"tools/call\""))) {
    answer_call(out, params);
  } else if (equal(method, text("\"initialize\""))) {
    answer_initialize(out, params);
  } else if (equal(method, text("\"tools/list\""))) {
    put(out, text(",\"result\":{\"tools\":[{\"name\":\"echo\",\"inputSchema\":{\"type\":\"object\"}}]}}\n"));
  } else if (equal(method, text("\"ping\""))) {
    put(out, text(",\"result\":{}}\n"));
  } else {
    put(out, text(",\"error\":{\"code\":-32601,\"message\":\"Method not found\"}}\n"));
  }
}

static void flush(Buffer* out) {
  size_t done = 0;
  while (done < out->size) {
    const ssize_t n = write(STDOUT_FILENO, out->data + done, out->size - done);
    if (n < 0 && errno != EINTR) _exit(1);
    if (n > 0) done += (size_t)n;
  }
  out->size = 0;
}

static void pin_to_core(int core) {
  cpu_set_t cores;
  CPU_ZERO(&cores);
  CPU_SET((size_t)core, &cores);
  sched_setaffinity(0, sizeof cores, &cores);
}

int main(int argc, char** argv) {
  if (argc == 3 && strcmp(argv[1], "--core") == 0) pin_to_core(atoi(argv[2]));
  Buffer in = {0}, out = {0};
  size_t looked = 0; /* no newline before this */
  while (true) {
    make_room(&in, kRead);
    const ssize_t n = read(STDIN_FILENO, in.data + in.size, in.capacity - in.size);
    if (n < 0 && errno == EINTR) continue;
    if (n <= 0) return n < 0;
    in.size += (size_t)n;
    size_t begin = 0;
    const char* newline;
    while ((newline = memchr(in.data + looked, '\n', in.size - looked))) {
      const size_t end = (size_t)(newline - in.data);
      answer((Slice){in.data + begin, end - begin}, &out);
      begin = looked = end + 1;
      if (out.size > kFlushAt) flush(&out);
    }
    memmove(in.data, in.data + begin, in.size - begin);
    in.size -= begin;
    looked = in.size;
    flush(&out);
  }
}

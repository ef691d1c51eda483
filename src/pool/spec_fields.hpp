// The configuration keys of a server, described once for reading and writing: describe() calls `io("key",
// &T::member)` for each key of T, and `io` reads the member from a configuration (FieldReader) or writes it
// (FieldWriter). Private.
#pragma once

#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "fairlead/base/duration.hpp"
#include "fairlead/json/writer.hpp"
#include "fairlead/pool/server_spec.hpp"
#include "json/config_reader.hpp"

namespace fairlead::pool {

template <class T>
using EnumNames = std::vector<std::pair<std::string_view, T>>;

inline EnumNames<Requirement> enum_names(Requirement) {
  return {{"off", Requirement::off},
          {"best_effort", Requirement::best_effort},
          {"required", Requirement::required}};
}

inline EnumNames<Sharing> enum_names(Sharing) {
  return {{"automatic", Sharing::automatic},
          {"shared", Sharing::shared},
          {"per_session", Sharing::per_session},
          {"per_user", Sharing::per_user}};
}

inline EnumNames<StderrMode> enum_names(StderrMode) {
  return {{"log", StderrMode::log},
          {"relay", StderrMode::relay},
          {"discard", StderrMode::discard},
          {"inherit", StderrMode::inherit}};
}

template <class Io>
void describe(Io&& io, std::type_identity<Clocks>) {
  io("spawn", &Clocks::spawn)("handshake", &Clocks::handshake)("queue", &Clocks::queue)(
      "idle", &Clocks::idle)("absolute", &Clocks::absolute)("ping", &Clocks::ping)("health", &Clocks::health)(
      "idle_stop", &Clocks::idle_stop)("drain", &Clocks::drain);
}

template <class Io>
void describe(Io&& io, std::type_identity<RestartPolicy>) {
  using Policy = RestartPolicy;
  io("initial", &Policy::initial)("factor", &Policy::factor)("max", &Policy::max)("jitter", &Policy::jitter)(
      "forgive_after", &Policy::forgive_after)("crash_loop_after", &Policy::crash_loop_after)(
      "crash_loop_pause", &Policy::crash_loop_pause)("tool_crash_after", &Policy::tool_crash_after)(
      "tool_crash_pause", &Policy::tool_crash_pause);
}

// The keys of Containment::limits and Containment::files are in the same table as those of Containment.
template <class Io>
void describe(Io&& io, std::type_identity<ResourceLimits>) {
  using Limits = ResourceLimits;
  io("address_space", &Limits::address_space)("open_files", &Limits::open_files)(
      "processes", &Limits::processes)("cpu_seconds", &Limits::cpu_seconds)(
      "core_bytes", &Limits::core_bytes)("file_bytes", &Limits::file_bytes);
}

template <class Io>
void describe(Io&& io, std::type_identity<FileAccess>) {
  io("read", &FileAccess::read)("write", &FileAccess::write)("execute", &FileAccess::execute)(
      "system_paths", &FileAccess::system_paths);
}

template <class Io>
void describe(Io&& io, std::type_identity<Containment>) {
  io("cgroup", &Containment::cgroup)("cgroup_parent", &Containment::cgroup_parent)(
      "memory_max", &Containment::memory_max)("pids_max", &Containment::pids_max)(
      "limits_mode", &Containment::limits_mode)("no_new_privs", &Containment::no_new_privs)(
      "landlock", &Containment::landlock);
}

template <class Io>
void describe(Io&& io, std::type_identity<Program>) {
  io("command", &Program::command)("args", &Program::args)("env", &Program::env)(
      "inherit_env", &Program::inherit_env)("cwd", &Program::cwd)("stderr", &Program::stderr_mode);
}

template <class Io>
void describe(Io&& io, std::type_identity<Address>) {
  io("url", &Address::url)("headers", &Address::headers);
}

template <class Io>
void describe(Io&& io, std::type_identity<ConnectorName>) {
  io("connector", &ConnectorName::name);
}

template <class Io>
void describe(Io&& io, std::type_identity<ServerSpec>) {
  io("sharing", &ServerSpec::sharing)("max_calls", &ServerSpec::max_calls)(
      "keep_running", &ServerSpec::keep_running)("enabled", &ServerSpec::enabled);
}

// Reads the keys of T from a configuration.
template <class T>
class FieldReader {
 public:
  FieldReader(json::ConfigReader& in, T& into) : in_(in), into_(into) {
    describe(*this, std::type_identity<T>());
  }

  template <class Member>
  FieldReader& operator()(std::string_view key, Member T::*member) {
    read(key, into_.*member);
    return *this;
  }

 private:
  void read(std::string_view key, std::chrono::milliseconds& value) { in_.duration(key, value); }
  void read(std::string_view key, bool& value) { in_.flag(key, value); }
  void read(std::string_view key, std::string& value) { in_.string(key, value); }
  void read(std::string_view key, std::vector<std::string>& value) { in_.strings(key, value); }
  void read(std::string_view key, std::map<std::string, std::string>& value) { in_.map(key, value); }
  void read(std::string_view key, std::optional<std::uint64_t>& value) { in_.bytes(key, value); }
  void read(std::string_view key, std::optional<std::vector<std::string>>& value) {
    if (in_.has(key)) in_.strings(key, value.emplace());
  }
  template <class Value>
  void read(std::string_view key, Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      in_.choice(key, value, enum_names(value));
    } else {
      in_.number(key, value);
    }
  }

  json::ConfigReader& in_;
  T& into_;
};

// Writes the keys of T whose values are not the defaults.
template <class T>
class FieldWriter {
 public:
  FieldWriter(json::Writer& out, const T& from) : out_(out), from_(from) {
    describe(*this, std::type_identity<T>());
  }

  template <class Member>
  FieldWriter& operator()(std::string_view key, Member T::*member) {
    if (from_.*member == defaults_.*member) return *this;
    out_.key(key);
    write(from_.*member);
    return *this;
  }

 private:
  void write(std::chrono::milliseconds value) { out_.string(format_duration(value)); }
  void write(bool value) { out_.boolean(value); }
  void write(double value) { out_.number(value); }
  void write(const std::string& value) { out_.string(value); }
  void write(const std::vector<std::string>& values) {
    out_.begin_array();
    for (const std::string& value : values) out_.string(value);
    out_.end_array();
  }
  void write(const std::map<std::string, std::string>& values) {
    out_.begin_object();
    for (const auto& [name, value] : values) out_.key(name).string(value);
    out_.end_object();
  }
  template <class Value>
  void write(const std::optional<Value>& value) {
    write(*value);  // has a value, because it differs from the default, which has none
  }
  template <class Value>
  void write(const Value& value) {
    if constexpr (std::is_enum_v<Value>) {
      for (const auto& [name, enumerator] : enum_names(value))
        if (enumerator == value) out_.string(name);
    } else {
      out_.unsigned_integer(value);
    }
  }

  json::Writer& out_;
  const T& from_;
  const T defaults_{};
};

}  // namespace fairlead::pool

// Tools whose calls become tasks: the client gets a response at once, and the tool continues to run.
#include <fairlead/loop/all.hpp>
#include <fairlead/rpc/codes.hpp>

#include "fixture.hpp"

namespace conformance {

namespace {

using namespace std::chrono_literals;
using ElicitOutcome = Result<mcp::ElicitResult>;
constexpr std::chrono::milliseconds kShortTime = 100ms;
constexpr std::chrono::milliseconds kLongTime = 1s;

struct GreetArgs {
  std::string name;
};
BOOST_DESCRIBE_STRUCT(GreetArgs, (), (name))
struct ComputeArgs {
  double seconds;
  std::optional<std::string> label;
};
BOOST_DESCRIBE_STRUCT(ComputeArgs, (), (seconds, label))
struct DeleteArgs {
  std::string filename;
};
BOOST_DESCRIBE_STRUCT(DeleteArgs, (), (filename))

// If the client does not support tasks, become_task() has no effect and the client waits for the result.
Task<Result<std::string>> slow_compute(mcp::Context context, ComputeArgs args) {
  if (args.seconds > 0) co_await context.become_task();
  const std::chrono::milliseconds time(static_cast<std::int64_t>(args.seconds * 1000));
  const bool finished = co_await context.sleep(time);
  if (!finished) co_return Error(ErrorKind::cancelled, "cancelled");
  co_return "Computed " + args.label.value_or("something");
}

Task<Result<std::string>> failing_job(mcp::Context context, NoArguments) {
  co_await context.sleep(kLongTime);
  throw mcp::ToolError("This job intentionally fails for testing");
}

Task<Result<std::string>> protocol_error_job(mcp::Context context, NoArguments) {
  co_await context.become_task();
  co_await context.sleep(kShortTime);
  co_return Error::rpc(rpc::kInternalError, "This job intentionally ends in a protocol error");
}

Task<Result<std::string>> confirm_delete(mcp::Context context, DeleteArgs args) {
  co_await context.become_task();
  Task<ElicitOutcome> pending =
      context.elicit("Delete " + args.filename + "?", form_schema("confirm", "boolean"), "confirm");
  const ElicitOutcome answer = co_await pending;
  if (!answer) co_return answer.error();
  const bool confirmed = json::View(answer->content)["confirm"].as_bool().value_or(false);
  co_return (confirmed ? "Deleted " : "Kept ") + args.filename;
}

Task<Result<std::string>> multi_input(mcp::Context context, NoArguments) {
  co_await context.become_task();
  auto pending = all(context.elicit("What is your name?", form_schema("name", "string"), "name"),
                     context.elicit("How old are you?", form_schema("age", "integer"), "age"));
  const auto [name, age] = co_await pending;
  if (!name) co_return name.error();
  if (!age) co_return age.error();
  co_return json::View(name->content)["name"].as_string().value_or("Unknown") + " is " +
      std::to_string(json::View(age->content)["age"].as_int().value_or(0));
}

// Elicits in the first round, and becomes a task in the second.
Task<Result<std::string>> with_task(mcp::Context context, NoArguments) {
  Task<ElicitOutcome> pending =
      context.elicit("What is your name?", form_schema("name", "string"), "user_name");
  const ElicitOutcome name = co_await pending;
  if (!name) co_return name.error();
  co_await context.become_task();
  co_await context.sleep(kShortTime);
  co_return "Hello, " + json::View(name->content)["name"].as_string().value_or("unknown") + "!";
}

template <class F>
void task_tool(mcp::Server& server, std::string name, std::string description, F function,
               mcp::TaskSupport support = mcp::TaskSupport::optional) {
  mcp::tool(server, std::move(name), std::move(description), std::move(function), mcp::ToolAnnotations(),
            support);
}

}  // namespace

void add_task_tools(mcp::Server& server) {
  mcp::tool(server, "greet", "Is never a task",
            [](const GreetArgs& in) { return "Hello, " + in.name + "!"; });
  task_tool(server, "slow_compute", "Takes as long as it is told to", &slow_compute);
  task_tool(server, "failing_job", "Fails, in a task only", &failing_job, mcp::TaskSupport::required);
  task_tool(server, "protocol_error_job", "Ends with an error of the protocol", &protocol_error_job);
  task_tool(server, "confirm_delete", "Asks before it deletes", &confirm_delete);
  task_tool(server, "multi_input", "Asks two questions at a time", &multi_input);
  task_tool(server, "test_tool_with_task", "Asks first, then becomes a task", &with_task);
}

}  // namespace conformance

import java.nio.file.Files;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.function.BiFunction;
import java.util.stream.Collectors;
import java.util.stream.Stream;

import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.server.McpServer;
import io.modelcontextprotocol.server.McpServerFeatures.SyncCompletionSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncPromptSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceSpecification;
import io.modelcontextprotocol.server.McpServerFeatures.SyncResourceTemplateSpecification;
import io.modelcontextprotocol.server.McpSyncServer;
import io.modelcontextprotocol.server.McpSyncServerExchange;
import io.modelcontextprotocol.server.transport.HttpServletStreamableServerTransportProvider;
import io.modelcontextprotocol.server.transport.StdioServerTransportProvider;
import io.modelcontextprotocol.spec.McpSchema.*;
import org.apache.catalina.Context;
import org.apache.catalina.startup.Tomcat;

/** The fixture (peers/README.md). */
final class Server {
    private static final String PIXEL = "iVBORw0KGgo=";

    private final CountDownLatch cancelled = new CountDownLatch(1);
    private McpSyncServer server;

    private interface Handler extends BiFunction<McpSyncServerExchange, CallToolRequest, CallToolResult> {}

    private static CallToolResult text(String words) {
        return CallToolResult.builder().addTextContent(words).build();
    }

    private static Map<String, Object> schema(Map<String, Object> properties) {
        return Map.of("type", "object", "properties", properties, "required", List.copyOf(properties.keySet()));
    }

    private static Map<String, Object> of(String type) {
        return Map.of("type", type);
    }

    private static int count(CallToolRequest request, String argument) {
        return ((Number) request.arguments().get(argument)).intValue();
    }

    private static void log(McpSyncServerExchange exchange, LoggingLevel level, String words) {
        exchange.loggingNotification(LoggingMessageNotification.builder(level, words).build());
    }

    private static void progress(McpSyncServerExchange exchange, CallToolRequest request, int done, int total, String message) {
        if (request.progressToken() != null) {
            exchange.progressNotification(new ProgressNotification(request.progressToken(), (double) done, (double) total, message, null));
        }
    }

    private static CallToolResult add(McpSyncServerExchange exchange, CallToolRequest request) {
        double sum = Stream.of("a", "b").mapToDouble(name -> ((Number) request.arguments().get(name)).doubleValue()).sum();
        return CallToolResult.builder().structuredContent(Map.of("sum", sum)).build();
    }

    private static CallToolResult steps(McpSyncServerExchange exchange, CallToolRequest request) {
        int to = count(request, "to");
        for (int number = 1; number <= to; ++number) {
            progress(exchange, request, number, to, "step " + number);
            log(exchange, LoggingLevel.INFO, "at step " + number);
        }
        log(exchange, LoggingLevel.DEBUG, "done");
        return text(to + " steps");
    }

    /** The SDK 2.1 has no cancellation; one that gets it is expected to interrupt the handler. */
    private CallToolResult waitForCancellation(McpSyncServerExchange exchange, CallToolRequest request) {
        progress(exchange, request, 1, 1, "");
        try {
            Thread.sleep(60_000);
        } catch (InterruptedException interrupted) {
            cancelled.countDown();
        }
        return text("nobody cancelled it");
    }

    private CallToolResult cancelled(McpSyncServerExchange exchange, CallToolRequest request) {
        try {
            return text(cancelled.await(5, TimeUnit.SECONDS) ? "1" : "never");
        } catch (InterruptedException interrupted) {
            return text("never");
        }
    }

    private static Object elicit(McpSyncServerExchange exchange, String message, String name, String type) {
        ElicitRequest form = ElicitFormRequest.builder(message, schema(Map.of(name, of(type)))).build();
        return exchange.createElicitation(form).content().get(name);
    }

    private static CallToolResult confirm(McpSyncServerExchange exchange, CallToolRequest request) {
        Object name = elicit(exchange, "Who are you?", "name", "string");
        Object sure = elicit(exchange, "Are you sure?", "sure", "boolean");
        return text(name + " is " + (Boolean.TRUE.equals(sure) ? "sure" : "not sure"));
    }

    private static CallToolResult sample(McpSyncServerExchange exchange, CallToolRequest request) {
        Content question = TextContent.builder((String) request.arguments().get("message")).build();
        List<SamplingMessage> messages = List.of(SamplingMessage.builder(Role.USER, question).build());
        CreateMessageResult answer = exchange.createMessage(CreateMessageRequest.builder(messages, 50).build());
        return text(answer.model() + ": " + ((TextContent) answer.content()).text());
    }

    private static CallToolResult where(McpSyncServerExchange exchange, CallToolRequest request) {
        return text(exchange.listRoots().roots().stream().map(Root::uri).collect(Collectors.joining(" ")));
    }

    private CallToolResult touch(McpSyncServerExchange exchange, CallToolRequest request) {
        server.notifyResourcesUpdated(new ResourcesUpdatedNotification("memo://one"));
        return text("touched");
    }

    private static ReadResourceResult read(McpSyncServerExchange exchange, ReadResourceRequest request) {
        String uri = request.uri();
        ResourceContents contents = switch (uri) {
            case "memo://one" -> TextResourceContents.builder(uri, "the first memo").mimeType("text/plain").build();
            case "pixel://red" -> BlobResourceContents.builder(uri, PIXEL).mimeType("image/png").build();
            default -> TextResourceContents.builder(uri, "memo " + uri.substring("memos://".length())).build();
        };
        return ReadResourceResult.builder(List.of(contents)).build();
    }

    private static GetPromptResult greet(McpSyncServerExchange exchange, GetPromptRequest request) {
        Content words = TextContent.builder("Say hello to " + request.arguments().get("name")).build();
        return GetPromptResult.builder(List.of(PromptMessage.builder(Role.USER, words).build())).build();
    }

    private static CompleteResult complete(McpSyncServerExchange exchange, CompleteRequest request) {
        List<String> values = Stream.of("alice", "albert", "bob").filter(name -> name.startsWith(request.argument().value())).toList();
        return new CompleteResult(new CompleteResult.CompleteCompletion(values, values.size(), false));
    }

    private McpSyncServer build(McpServer.SyncSpecification<?> server) {
        server.serverInfo("java", "1").capabilities(
            ServerCapabilities.builder().tools(false).prompts(false).resources(true, false).logging().completions().build());
        tool(server, "echo", Map.of("message", of("string")), (exchange, request) -> text((String) request.arguments().get("message")));
        server.toolCall(
            Tool.builder("add", schema(Map.of("a", of("number"), "b", of("number"))))
                .outputSchema(schema(Map.of("sum", of("number")))).build(),
            Server::add);
        tool(server, "fail", Map.of(), (exchange, request) -> CallToolResult.builder().addTextContent("it does not work").isError(true).build());
        tool(server, "large", Map.of("bytes", of("integer")), (exchange, request) -> text("x".repeat(count(request, "bytes"))));
        tool(server, "steps", Map.of("to", of("integer")), Server::steps);
        tool(server, "wait", Map.of(), this::waitForCancellation);
        tool(server, "cancelled", Map.of(), this::cancelled);
        tool(server, "confirm", Map.of(), Server::confirm);
        tool(server, "sample", Map.of("message", of("string")), Server::sample);
        tool(server, "where", Map.of(), Server::where);
        tool(server, "touch", Map.of(), this::touch);
        server.resources(
            new SyncResourceSpecification(Resource.builder("memo://one", "one").mimeType("text/plain").build(), Server::read),
            new SyncResourceSpecification(Resource.builder("pixel://red", "pixel").mimeType("image/png").build(), Server::read));
        server.resourceTemplates(
            new SyncResourceTemplateSpecification(ResourceTemplate.builder("memos://{name}", "memos").build(), Server::read));
        Prompt greet = Prompt.builder("greet").arguments(List.of(PromptArgument.builder("name").required(true).build())).build();
        server.prompts(new SyncPromptSpecification(greet, Server::greet));
        server.completions(new SyncCompletionSpecification(PromptReference.builder("greet").build(), Server::complete));
        return server.build();
    }

    private static void tool(McpServer.SyncSpecification<?> server, String name, Map<String, Object> properties, Handler run) {
        server.toolCall(Tool.builder(name, schema(properties)).build(), run);
    }

    void serve(String transport) throws Exception {
        if (transport.equals("stdio")) {
            server = build(McpServer.sync(new StdioServerTransportProvider(McpJsonDefaults.getMapper())));
            return;
        }
        var servlet = HttpServletStreamableServerTransportProvider.builder().mcpEndpoint("/mcp").build();
        server = build(McpServer.sync(servlet));
        Tomcat tomcat = new Tomcat();
        tomcat.setBaseDir(Files.createTempDirectory("peer").toString());
        tomcat.setHostname("127.0.0.1");
        tomcat.setPort(0);
        tomcat.getConnector().setProperty("address", "127.0.0.1");
        Context context = tomcat.addContext("", tomcat.getServer().getCatalinaBase().toString());
        Tomcat.addServlet(context, "mcp", servlet).setAsyncSupported(true);
        context.addServletMappingDecoded("/*", "mcp");
        tomcat.start();
        System.err.println("listening on http://127.0.0.1:" + tomcat.getConnector().getLocalPort());
        tomcat.getServer().await();
    }
}

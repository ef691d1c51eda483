import java.net.URI;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.Set;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import java.util.stream.IntStream;

import io.modelcontextprotocol.client.McpClient;
import io.modelcontextprotocol.client.McpSyncClient;
import io.modelcontextprotocol.client.transport.HttpClientStreamableHttpTransport;
import io.modelcontextprotocol.client.transport.ServerParameters;
import io.modelcontextprotocol.client.transport.StdioClientTransport;
import io.modelcontextprotocol.json.McpJsonDefaults;
import io.modelcontextprotocol.json.TypeRef;
import io.modelcontextprotocol.spec.McpClientTransport;
import io.modelcontextprotocol.spec.McpSchema.*;

/** The checks with the client of the Java SDK (peers/README.md). */
final class Client {
    private static final int SECONDS = 60;
    private static final int LARGE = 1 << 20;
    private static final String UNICODE = "h\u00e9llo\n\ud83d\ude00 \u6f22\u5b57 \u2028 \"\\ \u0001";
    private static final List<String> TOOLS =
        List.of("add", "cancelled", "confirm", "echo", "fail", "large", "sample", "steps", "touch", "wait", "where");

    private final BlockingQueue<ProgressNotification> progress = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> logs = new LinkedBlockingQueue<>();
    private final BlockingQueue<String> updates = new LinkedBlockingQueue<>();
    private final McpSyncClient client;
    private final String prefix;
    private final int leastPages;

    /** The SDK has no way to do it; the message says why. */
    private static final class Unsupported extends Exception {
        Unsupported(String reason) {
            super(reason);
        }
    }

    private interface Check {
        void run() throws Exception;
    }

    private record Feature(String name, Check check) {}

    private Client(Map<String, Object> plan) {
        prefix = (String) plan.getOrDefault("prefix", "");
        leastPages = (Integer) plan.getOrDefault("least_pages", 2);
        client = McpClient.sync(transport(plan))
            .requestTimeout(Duration.ofSeconds(SECONDS))
            .initializationTimeout(Duration.ofSeconds(SECONDS))
            .capabilities(ClientCapabilities.builder().roots(false).sampling().elicitation().build())
            .roots(Root.builder("file:///one").build(), Root.builder("file:///two").build())
            .sampling(request -> CreateMessageResult.builder(Role.ASSISTANT, request.messages().get(0).content(), "parrot").build())
            .elicitation(Client::fillIn)
            .progressConsumer(progress::add)
            .loggingConsumer(message -> logs.add(message.data()))
            .resourcesUpdateConsumer(contents -> contents.forEach(one -> updates.add(one.uri())))
            .build();
    }

    @SuppressWarnings("unchecked")
    private static McpClientTransport transport(Map<String, Object> plan) {
        if (plan.get("transport").equals("stdio")) {
            List<String> command = (List<String>) plan.get("command");
            ServerParameters server = ServerParameters.builder(command.get(0)).args(command.subList(1, command.size())).build();
            return new StdioClientTransport(server, McpJsonDefaults.getMapper());
        }
        URI url = URI.create((String) plan.get("url"));
        return HttpClientStreamableHttpTransport.builder(url.resolve("/").toString()).endpoint(url.getPath()).build();
    }

    private static ElicitResult fillIn(ElicitFormRequest request) {
        boolean name = ((Map<?, ?>) request.requestedSchema().get("properties")).containsKey("name");
        return ElicitResult.builder(ElicitResult.Action.ACCEPT).content(name ? Map.of("name", "Ada") : Map.of("sure", true)).build();
    }

    private static void report(String feature, String status, String reason) throws Exception {
        String words = String.valueOf(reason);
        Map<String, String> line = Map.of("feature", feature, "status", status, "reason", words.substring(0, Math.min(600, words.length())));
        System.out.println(McpJsonDefaults.getMapper().writeValueAsString(line));
    }

    private static void expect(boolean holds, String otherwise) {
        if (!holds) {
            throw new IllegalStateException(otherwise.substring(0, Math.min(300, otherwise.length())));
        }
    }

    private static void same(Object got, Object wanted) {
        expect(Objects.equals(got, wanted), "got \"" + got + "\", wanted \"" + wanted + "\"");
    }

    private static <T> T next(BlockingQueue<T> from) throws InterruptedException {
        T one = from.poll(SECONDS, TimeUnit.SECONDS);
        expect(one != null, "nothing arrived in " + SECONDS + " s");
        return one;
    }

    /** Runs what has to be refused. */
    private static void refused(Check check, String what) {
        try {
            check.run();
        } catch (Exception refused) {
            return;
        }
        throw new IllegalStateException(what + " was not refused");
    }

    private CallToolResult call(String tool, Map<String, Object> arguments, Object progressToken) {
        var request = CallToolRequest.builder(prefix + tool).arguments(arguments);
        if (progressToken != null) {
            request.progressToken(progressToken);
        }
        return client.callTool(request.build());
    }

    private static String textOf(CallToolResult result) {
        StringBuilder all = new StringBuilder();
        result.content().forEach(block -> all.append(((TextContent) block).text()));
        return all.toString();
    }

    private String text(String tool, Map<String, Object> arguments, Object progressToken) {
        CallToolResult result = call(tool, arguments, progressToken);
        expect(!Boolean.TRUE.equals(result.isError()), tool + " answered with the error " + textOf(result));
        return textOf(result);
    }

    private void expectText(String tool, Map<String, Object> arguments, String wanted) {
        same(text(tool, arguments, null), wanted);
    }

    /** Lists the tools page by page; returns the number of pages. */
    private int pages() {
        List<String> names = new ArrayList<>();
        int pages = 0;
        String cursor = null;
        do {
            ListToolsResult page = client.listTools(cursor);
            page.tools().forEach(tool -> names.add(tool.name()));
            cursor = page.nextCursor();
            ++pages;
        } while (cursor != null);
        TOOLS.forEach(tool -> expect(names.contains(prefix + tool), "no tool " + tool + " in " + names));
        return pages;
    }

    private void error() {
        CallToolResult result = call("fail", Map.of(), null);
        expect(Boolean.TRUE.equals(result.isError()) && textOf(result).contains("it does not work"), "the tool's own words are lost: " + result);
        refused(() -> text("missing", Map.of(), null), "a tool that does not exist");
    }

    private void structured() {
        Map<?, ?> content = (Map<?, ?>) call("add", Map.of("a", 2, "b", 3.5), null).structuredContent();
        same(content, Map.of("sum", 5.5));
    }

    private void concurrent() {
        ExecutorService threads = Executors.newFixedThreadPool(40);
        try {
            CompletableFuture<?>[] calls = IntStream.range(0, 40)
                .mapToObj(number -> "message " + number)
                .map(message -> CompletableFuture.runAsync(() -> expectText("echo", Map.of("message", message), message), threads))
                .toArray(CompletableFuture[]::new);
            CompletableFuture.allOf(calls).join();
        } finally {
            threads.shutdownNow();
        }
    }

    /** The SDK runs the consumers of notifications side by side, so that these may be seen in another order. */
    private void log() throws Exception {
        client.setLoggingLevel(LoggingLevel.INFO);
        expectText("steps", Map.of("to", 2), "2 steps");
        same(Set.of(next(logs), next(logs)), Set.of("at step 1", "at step 2"));
    }

    private void progress() throws Exception {
        same(text("steps", Map.of("to", 3), "steps"), "3 steps");
        List<ProgressNotification> steps = new ArrayList<>(List.of(next(progress), next(progress), next(progress)));
        steps.sort(Comparator.comparing(ProgressNotification::progress));
        for (int number = 1; number <= 3; ++number) {
            ProgressNotification step = steps.get(number - 1);
            same(List.of(step.progressToken(), step.progress(), step.total(), step.message()), List.of("steps", (double) number, 3.0, "step " + number));
        }
    }

    private String read(String uri) {
        ResourceContents contents = client.readResource(ReadResourceRequest.builder(uri).build()).contents().get(0);
        return contents instanceof BlobResourceContents blob ? blob.mimeType() + " " + blob.blob().substring(0, 8) : ((TextResourceContents) contents).text();
    }

    private void resources() {
        List<String> uris = client.listResources().resources().stream().map(Resource::uri).toList();
        expect(uris.containsAll(List.of("memo://one", "pixel://red")), "the resources are " + uris);
        same(read("memo://one"), "the first memo");
        same(read("pixel://red"), "image/png iVBORw0K");
        refused(() -> read("nothing://here"), "a resource that does not exist");
    }

    private void templates() {
        List<String> templates = client.listResourceTemplates().resourceTemplates().stream().map(ResourceTemplate::uriTemplate).toList();
        expect(templates.contains("memos://{name}"), "the templates are " + templates);
        same(read("memos://two"), "memo two");
    }

    private void subscribe() throws Exception {
        client.subscribeResource(SubscribeRequest.builder("memo://one").build());
        expectText("touch", Map.of(), "touched");
        same(next(updates), "memo://one");
    }

    private void prompts() {
        List<String> names = client.listPrompts().prompts().stream().map(Prompt::name).toList();
        expect(names.contains(prefix + "greet"), "the prompts are " + names);
        GetPromptResult prompt = client.getPrompt(GetPromptRequest.builder(prefix + "greet").arguments(Map.of("name", "Ada")).build());
        same(((TextContent) prompt.messages().get(0).content()).text(), "Say hello to Ada");
    }

    private void completion() {
        var argument = new CompleteRequest.CompleteArgument("name", "al");
        CompleteReference reference = PromptReference.builder(prefix + "greet").build();
        same(client.completeCompletion(CompleteRequest.builder(reference, argument).build()).completion().values(), List.of("alice", "albert"));
    }

    /** The SDK does not keep the order of roots. */
    private void roots() {
        same(Set.of(text("where", Map.of(), null).trim().split(" ")), Set.of("file:///one", "file:///two"));
    }

    /** Those that make a gateway give the client a server of its own come last. */
    private List<Feature> features() {
        return List.of(
            new Feature("list", this::pages),
            new Feature("call", () -> expectText("echo", Map.of("message", "hello"), "hello")),
            new Feature("error", this::error),
            new Feature("structured", this::structured),
            new Feature("unicode", () -> expectText("echo", Map.of("message", UNICODE), UNICODE)),
            new Feature("large", () -> expectText("large", Map.of("bytes", LARGE), "x".repeat(LARGE))),
            new Feature("concurrent", this::concurrent),
            new Feature("pagination", () -> {
                int pages = pages();
                expect(pages >= leastPages, pages + " page(s) of tools");
            }),
            new Feature("log", this::log),
            new Feature("progress", this::progress),
            new Feature("cancel", () -> { throw new Unsupported("the SDK has no cancellation"); }),
            new Feature("resources", this::resources),
            new Feature("templates", this::templates),
            new Feature("subscribe", this::subscribe),
            new Feature("prompts", this::prompts),
            new Feature("completion", this::completion),
            new Feature("elicit", () -> expectText("confirm", Map.of(), "Ada is sure")),
            new Feature("sample", () -> expectText("sample", Map.of("message", "hi"), "parrot: hi")),
            new Feature("roots", this::roots));
    }

    /** Runs the checks and reports each; returns whether the client could connect. */
    static boolean check(String text) throws Exception {
        Map<String, Object> plan = McpJsonDefaults.getMapper().readValue(text, new TypeRef<Map<String, Object>>() {});
        Client peer = new Client(plan);
        try {
            report("connect", "pass", peer.client.initialize().protocolVersion());
        } catch (Exception problem) {
            report("connect", "fail", problem.toString());
            return false;
        }
        List<?> skipped = (List<?>) plan.getOrDefault("skip", List.of());
        for (Feature feature : peer.features()) {
            if (skipped.contains(feature.name())) {
                continue;
            }
            try {
                feature.check().run();
                report(feature.name(), "pass", "");
            } catch (Unsupported reason) {
                report(feature.name(), "unsupported", reason.getMessage());
            } catch (Exception problem) {
                report(feature.name(), "fail", problem.toString());
            }
        }
        peer.client.closeGracefully();
        return true;
    }
}

package main

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/google/jsonschema-go/jsonschema"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const modern = "2026-07-28"

type nothing struct{}
type echoArgs struct {
	Message string `json:"message"`
}
type addArgs struct {
	A float64 `json:"a"`
	B float64 `json:"b"`
}
type sum struct {
	Sum float64 `json:"sum"`
}
type stepsArgs struct {
	To int `json:"to"`
}
type largeArgs struct {
	Bytes int `json:"bytes"`
}

var cancellations atomic.Int64

func text(words string) *mcp.CallToolResult {
	return &mcp.CallToolResult{Content: []mcp.Content{&mcp.TextContent{Text: words}}}
}

// tool adds a tool whose result is text, or a request for input.
func tool[In any](server *mcp.Server, name string, run func(context.Context, *mcp.CallToolRequest, In) (*mcp.CallToolResult, error)) {
	mcp.AddTool(server, &mcp.Tool{Name: name}, func(ctx context.Context, request *mcp.CallToolRequest, in In) (*mcp.CallToolResult, any, error) {
		result, err := run(ctx, request, in)
		return result, nil, err
	})
}

func steps(ctx context.Context, request *mcp.CallToolRequest, in stepsArgs) (*mcp.CallToolResult, error) {
	say := func(level mcp.LoggingLevel, words string) error {
		return request.Session.Log(ctx, &mcp.LoggingMessageParams{Level: level, Data: words})
	}
	for number := 1; number <= in.To; number++ {
		if token := request.Params.GetProgressToken(); token != nil {
			progress := &mcp.ProgressNotificationParams{ProgressToken: token, Progress: float64(number), Total: float64(in.To), Message: fmt.Sprintf("step %d", number)}
			if err := request.Session.NotifyProgress(ctx, progress); err != nil {
				return nil, err
			}
		}
		if err := say("info", fmt.Sprintf("at step %d", number)); err != nil {
			return nil, err
		}
	}
	return text(fmt.Sprintf("%d steps", in.To)), say("debug", "done")
}

func wait(ctx context.Context, request *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
	progress := &mcp.ProgressNotificationParams{ProgressToken: request.Params.GetProgressToken(), Progress: 1}
	if err := request.Session.NotifyProgress(ctx, progress); err != nil {
		return nil, err
	}
	select {
	case <-ctx.Done():
		cancellations.Add(1)
		return nil, ctx.Err()
	case <-time.After(time.Minute):
		return text("nobody cancelled it"), nil
	}
}

func cancelled(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, error) {
	for range 500 {
		if cancellations.Load() > 0 {
			return text(strconv.FormatInt(cancellations.Load(), 10)), nil
		}
		time.Sleep(10 * time.Millisecond)
	}
	return text("never"), nil
}

func form(message, name, kind string) *mcp.ElicitParams {
	properties := map[string]*jsonschema.Schema{name: {Type: kind}}
	return &mcp.ElicitParams{Message: message, RequestedSchema: &jsonschema.Schema{Type: "object", Properties: properties, Required: []string{name}}}
}

func input(key string, request mcp.InputRequest, state string) *mcp.CallToolResult {
	return &mcp.CallToolResult{InputRequests: mcp.InputRequestMap{key: request}, RequestState: state}
}

// confirm asks twice. The SDK translates one round for legacy clients, not two, so these are asked here.
func confirm() func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, error) {
	name, sure := form("Who are you?", "name", "string"), form("Are you sure?", "sure", "boolean")
	return func(ctx context.Context, request *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		if request.Session.InitializeParams() != nil && request.Session.InitializeParams().ProtocolVersion < modern {
			first, err := request.Session.Elicit(ctx, name)
			if err != nil {
				return nil, err
			}
			second, err := request.Session.Elicit(ctx, sure)
			if err != nil {
				return nil, err
			}
			return text(fmt.Sprintf("%v is %s", first.Content["name"], map[any]string{true: "sure"}[second.Content["sure"]])), nil
		}
		if answer, ok := request.Params.InputResponses["sure"].(*mcp.ElicitResult); ok {
			return text(request.Params.RequestState + " is " + map[any]string{true: "sure"}[answer.Content["sure"]]), nil
		}
		if answer, ok := request.Params.InputResponses["name"].(*mcp.ElicitResult); ok {
			return input("sure", sure, answer.Content["name"].(string)), nil
		}
		return input("name", name, ""), nil
	}
}

func sample(_ context.Context, request *mcp.CallToolRequest, in echoArgs) (*mcp.CallToolResult, error) {
	switch answer := request.Params.InputResponses["sample"].(type) {
	case *mcp.CreateMessageResult:
		return text(answer.Model + ": " + answer.Content.(*mcp.TextContent).Text), nil
	case *mcp.CreateMessageWithToolsResult:
		return text(answer.Model + ": " + answer.Content[0].(*mcp.TextContent).Text), nil
	}
	messages := []*mcp.SamplingMessage{{Role: "user", Content: &mcp.TextContent{Text: in.Message}}}
	return input("sample", &mcp.CreateMessageParams{MaxTokens: 50, Messages: messages}, ""), nil
}

func where(_ context.Context, request *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
	answer, ok := request.Params.InputResponses["roots"].(*mcp.ListRootsResult)
	if !ok {
		return input("roots", &mcp.ListRootsParams{}, ""), nil
	}
	var uris []string
	for _, root := range answer.Roots {
		uris = append(uris, root.URI)
	}
	return text(strings.Join(uris, " ")), nil
}

func read(_ context.Context, request *mcp.ReadResourceRequest) (*mcp.ReadResourceResult, error) {
	contents := &mcp.ResourceContents{URI: request.Params.URI, MIMEType: "text/plain"}
	switch uri := request.Params.URI; {
	case uri == "memo://one":
		contents.Text = "the first memo"
	case uri == "pixel://red":
		contents.MIMEType, contents.Blob = "image/png", []byte("\x89PNG\r\n\x1a\n")
	default:
		contents.Text = "memo " + strings.TrimPrefix(uri, "memos://")
	}
	return &mcp.ReadResourceResult{Contents: []*mcp.ResourceContents{contents}}, nil
}

func greet(_ context.Context, request *mcp.GetPromptRequest) (*mcp.GetPromptResult, error) {
	words := "Say hello to " + request.Params.Arguments["name"]
	return &mcp.GetPromptResult{Messages: []*mcp.PromptMessage{{Role: "user", Content: &mcp.TextContent{Text: words}}}}, nil
}

func complete(_ context.Context, request *mcp.CompleteRequest) (*mcp.CompleteResult, error) {
	values := []string{}
	for _, name := range []string{"alice", "albert", "bob"} {
		if strings.HasPrefix(name, request.Params.Argument.Value) {
			values = append(values, name)
		}
	}
	return &mcp.CompleteResult{Completion: mcp.CompletionResultDetails{Values: values, Total: len(values)}}, nil
}

func fixture() *mcp.Server {
	server := mcp.NewServer(&mcp.Implementation{Name: "go", Version: "1"}, &mcp.ServerOptions{
		PageSize:           5,
		CompletionHandler:  complete,
		SubscribeHandler:   func(context.Context, *mcp.SubscribeRequest) error { return nil },
		UnsubscribeHandler: func(context.Context, *mcp.UnsubscribeRequest) error { return nil },
	})
	tool(server, "echo", func(_ context.Context, _ *mcp.CallToolRequest, in echoArgs) (*mcp.CallToolResult, error) {
		return text(in.Message), nil
	})
	mcp.AddTool(server, &mcp.Tool{Name: "add"}, func(_ context.Context, _ *mcp.CallToolRequest, in addArgs) (*mcp.CallToolResult, sum, error) {
		return nil, sum{in.A + in.B}, nil
	})
	tool(server, "fail", func(context.Context, *mcp.CallToolRequest, nothing) (*mcp.CallToolResult, error) {
		return nil, errors.New("it does not work")
	})
	tool(server, "large", func(_ context.Context, _ *mcp.CallToolRequest, in largeArgs) (*mcp.CallToolResult, error) {
		return text(strings.Repeat("x", in.Bytes)), nil
	})
	tool(server, "steps", steps)
	tool(server, "wait", wait)
	tool(server, "cancelled", cancelled)
	tool(server, "confirm", confirm())
	tool(server, "sample", sample)
	tool(server, "where", where)
	tool(server, "touch", func(ctx context.Context, _ *mcp.CallToolRequest, _ nothing) (*mcp.CallToolResult, error) {
		return text("touched"), server.ResourceUpdated(ctx, &mcp.ResourceUpdatedNotificationParams{URI: "memo://one"})
	})
	server.AddResource(&mcp.Resource{URI: "memo://one", Name: "one", MIMEType: "text/plain"}, read)
	server.AddResource(&mcp.Resource{URI: "pixel://red", Name: "pixel", MIMEType: "image/png"}, read)
	server.AddResourceTemplate(&mcp.ResourceTemplate{URITemplate: "memos://{name}", Name: "memos"}, read)
	server.AddPrompt(&mcp.Prompt{Name: "greet", Arguments: []*mcp.PromptArgument{{Name: "name", Required: true}}}, greet)
	return server
}

// serve listens until it is ended. Over HTTP the SDK speaks 2026-07-28 only without sessions.
func serve(transport, revision string) error {
	server := fixture()
	if transport == "stdio" {
		return server.Run(context.Background(), &mcp.StdioTransport{})
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	same := func(*http.Request) *mcp.Server { return server }
	options := &mcp.StreamableHTTPOptions{JSONResponse: transport == "json", Stateless: revision == modern}
	http.Handle("/mcp", mcp.NewStreamableHTTPHandler(same, options))
	http.Handle("/sse", mcp.NewSSEHandler(same, nil))
	fmt.Fprintf(os.Stderr, "listening on http://%s\n", listener.Addr())
	return http.Serve(listener, nil)
}

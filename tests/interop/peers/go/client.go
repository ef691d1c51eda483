package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os/exec"
	"reflect"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/mcp"
)

const featureSeconds = 60
const large = 1 << 20
const unicode = "h\u00e9llo\n\U0001f600 \u6f22\u5b57 \u2028 \"\\ \u0001"

var tools = []string{"add", "cancelled", "confirm", "echo", "fail", "large", "sample", "steps", "touch", "wait", "where"}

type plan struct {
	Transport  string   `json:"transport"`
	Command    []string `json:"command"`
	URL        string   `json:"url"`
	Mode       string   `json:"mode"`
	Prefix     string   `json:"prefix"`
	Skip       []string `json:"skip"`
	LeastPages int      `json:"least_pages"`
}

// peer is a connected client and what it has heard.
type peer struct {
	plan
	*mcp.ClientSession
	progress chan *mcp.ProgressNotificationParams
	logs     chan string
	updates  chan string
	level    string // of log messages, in 2026-07-28
}

func report(feature, status, reason string) {
	line, _ := json.Marshal(map[string]string{"feature": feature, "status": status, "reason": reason})
	fmt.Println(string(line))
}

func same(got, wanted any) error {
	if reflect.DeepEqual(got, wanted) {
		return nil
	}
	return fmt.Errorf("got %.300q, wanted %.300q", fmt.Sprint(got), fmt.Sprint(wanted))
}

func connect(ctx context.Context, plan plan) (*peer, error) {
	p := &peer{plan: plan, progress: make(chan *mcp.ProgressNotificationParams, 100), logs: make(chan string, 100), updates: make(chan string, 100)}
	client := mcp.NewClient(&mcp.Implementation{Name: "go", Version: "1"}, &mcp.ClientOptions{
		CreateMessageHandler: func(_ context.Context, request *mcp.CreateMessageRequest) (*mcp.CreateMessageResult, error) {
			return &mcp.CreateMessageResult{Model: "parrot", Role: "assistant", Content: request.Params.Messages[0].Content}, nil
		},
		ElicitationHandler: func(_ context.Context, request *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
			schema, _ := json.Marshal(request.Params.RequestedSchema)
			content := map[string]any{"sure": true}
			if strings.Contains(string(schema), `"name"`) {
				content = map[string]any{"name": "Ada"}
			}
			return &mcp.ElicitResult{Action: "accept", Content: content}, nil
		},
		ResourceUpdatedHandler: func(_ context.Context, request *mcp.ResourceUpdatedNotificationRequest) {
			p.updates <- request.Params.URI
		},
		LoggingMessageHandler: func(_ context.Context, request *mcp.LoggingMessageRequest) {
			p.logs <- fmt.Sprint(request.Params.Data)
		},
		ProgressNotificationHandler: func(_ context.Context, request *mcp.ProgressNotificationClientRequest) {
			p.progress <- request.Params
		},
	})
	client.AddRoots(&mcp.Root{URI: "file:///one"}, &mcp.Root{URI: "file:///two"})
	var transport mcp.Transport
	switch plan.Transport {
	case "stdio":
		transport = &mcp.CommandTransport{Command: exec.Command(plan.Command[0], plan.Command[1:]...)}
	case "sse":
		transport = &mcp.SSEClientTransport{Endpoint: plan.URL}
	default:
		transport = &mcp.StreamableClientTransport{Endpoint: plan.URL}
	}
	var options *mcp.ClientSessionOptions
	if plan.Mode == "legacy" {
		options = &mcp.ClientSessionOptions{ProtocolVersion: "2025-11-25"}
	}
	session, err := client.Connect(ctx, transport, options)
	p.ClientSession = session
	return p, err
}

func (p *peer) call(ctx context.Context, tool string, arguments map[string]any, meta mcp.Meta) (*mcp.CallToolResult, error) {
	if p.level != "" {
		if meta == nil {
			meta = mcp.Meta{}
		}
		meta[mcp.MetaKeyLogLevel] = p.level
	}
	return p.CallTool(ctx, &mcp.CallToolParams{Name: p.Prefix + tool, Arguments: arguments, Meta: meta})
}

func (p *peer) text(ctx context.Context, tool string, arguments map[string]any, meta mcp.Meta) (string, error) {
	result, err := p.call(ctx, tool, arguments, meta)
	if err != nil {
		return "", err
	}
	var all string
	for _, content := range result.Content {
		if words, ok := content.(*mcp.TextContent); ok {
			all += words.Text
		}
	}
	if result.IsError {
		return "", fmt.Errorf("%s answered with the error %q", tool, all)
	}
	return all, nil
}

// expect calls a tool and compares its text.
func (p *peer) expect(ctx context.Context, tool string, arguments map[string]any, wanted string) error {
	got, err := p.text(ctx, tool, arguments, nil)
	return errors.Join(err, same(got, wanted))
}

func (p *peer) pages(ctx context.Context) (names []string, pages int, err error) {
	for cursor := ""; pages == 0 || cursor != ""; pages++ {
		page, err := p.ListTools(ctx, &mcp.ListToolsParams{Cursor: cursor})
		if err != nil {
			return nil, 0, err
		}
		for _, tool := range page.Tools {
			names = append(names, tool.Name)
		}
		cursor = page.NextCursor
	}
	for _, tool := range tools {
		if !slices.Contains(names, p.Prefix+tool) {
			return nil, 0, fmt.Errorf("no tool %s in %v", tool, names)
		}
	}
	return names, pages, nil
}

func next[T any](ctx context.Context, from chan T) (T, error) {
	select {
	case one := <-from:
		return one, nil
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

func (p *peer) checkError(ctx context.Context) error {
	result, err := p.call(ctx, "fail", nil, nil)
	if err != nil {
		return err
	}
	words, _ := result.Content[0].(*mcp.TextContent)
	if !result.IsError || !strings.Contains(words.Text, "it does not work") {
		return fmt.Errorf("the tool's own words are lost: %+v", result)
	}
	if result, err := p.call(ctx, "missing", nil, nil); err == nil && !result.IsError {
		return errors.New("a tool that does not exist was not refused")
	}
	return nil
}

func (p *peer) checkStructured(ctx context.Context) error {
	result, err := p.call(ctx, "add", map[string]any{"a": 2, "b": 3.5}, nil)
	if err != nil {
		return err
	}
	return same(result.StructuredContent, map[string]any{"sum": 5.5})
}

func (p *peer) checkProgress(ctx context.Context) error {
	got, err := p.text(ctx, "steps", map[string]any{"to": 3}, mcp.Meta{"progressToken": "steps"})
	if err := errors.Join(err, same(got, "3 steps")); err != nil {
		return err
	}
	for number := 1; number <= 3; number++ {
		step, err := next(ctx, p.progress)
		if err != nil {
			return err
		}
		if err := same(fmt.Sprint(step.ProgressToken, step.Progress, step.Total, step.Message), fmt.Sprint("steps", number, 3, fmt.Sprintf("step %d", number))); err != nil {
			return err
		}
	}
	return nil
}

func (p *peer) checkLog(ctx context.Context) error {
	if p.InitializeResult().ProtocolVersion < modern {
		if err := p.SetLoggingLevel(ctx, &mcp.SetLoggingLevelParams{Level: "info"}); err != nil {
			return err
		}
	} else {
		p.level = "info"
		defer func() { p.level = "" }()
	}
	if err := p.expect(ctx, "steps", map[string]any{"to": 2}, "2 steps"); err != nil {
		return err
	}
	for number := 1; number <= 2; number++ {
		words, err := next(ctx, p.logs)
		if err := errors.Join(err, same(words, fmt.Sprintf("at step %d", number))); err != nil {
			return err
		}
	}
	return same(len(p.logs), 0)
}

func (p *peer) checkCancel(ctx context.Context) error {
	calling, cancel := context.WithCancel(ctx)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := p.call(calling, "wait", nil, mcp.Meta{"progressToken": "wait"})
		ended <- err
	}()
	if _, err := next(ctx, p.progress); err != nil {
		return err
	}
	cancel()
	if err := <-ended; err == nil {
		return errors.New("wait was not cancelled")
	}
	return p.expect(ctx, "cancelled", nil, "1")
}

func (p *peer) checkResources(ctx context.Context) error {
	listed, err := p.ListResources(ctx, nil)
	if err != nil {
		return err
	}
	var uris []string
	for _, resource := range listed.Resources {
		uris = append(uris, resource.URI)
	}
	if !slices.Contains(uris, "memo://one") || !slices.Contains(uris, "pixel://red") {
		return fmt.Errorf("the resources are %v", uris)
	}
	memo, err := p.ReadResource(ctx, &mcp.ReadResourceParams{URI: "memo://one"})
	if err != nil {
		return err
	}
	pixel, err := p.ReadResource(ctx, &mcp.ReadResourceParams{URI: "pixel://red"})
	if err != nil {
		return err
	}
	if _, err := p.ReadResource(ctx, &mcp.ReadResourceParams{URI: "nothing://here"}); err == nil {
		return errors.New("a resource that does not exist was not refused")
	}
	return errors.Join(same(memo.Contents[0].Text, "the first memo"), same(string(pixel.Contents[0].Blob[1:4]), "PNG"))
}

func (p *peer) checkTemplates(ctx context.Context) error {
	listed, err := p.ListResourceTemplates(ctx, nil)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(listed.ResourceTemplates, func(one *mcp.ResourceTemplate) bool { return one.URITemplate == "memos://{name}" }) {
		return errors.New("the template is not listed")
	}
	memo, err := p.ReadResource(ctx, &mcp.ReadResourceParams{URI: "memos://two"})
	if err != nil {
		return err
	}
	return same(memo.Contents[0].Text, "memo two")
}

func (p *peer) checkSubscribe(ctx context.Context) error {
	if err := p.Subscribe(ctx, &mcp.SubscribeParams{URI: "memo://one"}); err != nil {
		return err
	}
	// In 2026-07-28 Subscribe does not wait for the server's acknowledgement, and there is no way to hear of it.
	for {
		if err := p.expect(ctx, "touch", nil, "touched"); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		uri, err := next(waiting, p.updates)
		cancel()
		if err == nil || ctx.Err() != nil {
			return errors.Join(err, same(uri, "memo://one"))
		}
	}
}

func (p *peer) checkPrompts(ctx context.Context) error {
	listed, err := p.ListPrompts(ctx, nil)
	if err != nil {
		return err
	}
	if !slices.ContainsFunc(listed.Prompts, func(one *mcp.Prompt) bool { return one.Name == p.Prefix+"greet" }) {
		return errors.New("the prompt is not listed")
	}
	prompt, err := p.GetPrompt(ctx, &mcp.GetPromptParams{Name: p.Prefix + "greet", Arguments: map[string]string{"name": "Ada"}})
	if err != nil {
		return err
	}
	return same(prompt.Messages[0].Content.(*mcp.TextContent).Text, "Say hello to Ada")
}

func (p *peer) checkCompletion(ctx context.Context) error {
	answer, err := p.Complete(ctx, &mcp.CompleteParams{
		Ref:      &mcp.CompleteReference{Type: "ref/prompt", Name: p.Prefix + "greet"},
		Argument: mcp.CompleteParamsArgument{Name: "name", Value: "al"},
	})
	if err != nil {
		return err
	}
	return same(answer.Completion.Values, []string{"alice", "albert"})
}

func (p *peer) checkConcurrent(ctx context.Context) error {
	var calls sync.WaitGroup
	problems := make([]error, 40)
	for number := range problems {
		calls.Go(func() {
			message := fmt.Sprintf("message %d", number)
			problems[number] = p.expect(ctx, "echo", map[string]any{"message": message}, message)
		})
	}
	calls.Wait()
	return errors.Join(problems...)
}

// check runs the checks. Those that make a gateway give the client a server of its own come last.
func check(text string) error {
	var plan plan
	if err := json.Unmarshal([]byte(text), &plan); err != nil {
		return err
	}
	connecting, cancel := context.WithTimeout(context.Background(), time.Minute)
	defer cancel()
	p, err := connect(connecting, plan)
	if err != nil {
		report("connect", "fail", err.Error())
		return err
	}
	report("connect", "pass", p.InitializeResult().ProtocolVersion)
	for _, one := range []struct {
		feature string
		run     func(context.Context) error
	}{
		{"list", func(ctx context.Context) error { _, _, err := p.pages(ctx); return err }},
		{"call", func(ctx context.Context) error {
			return p.expect(ctx, "echo", map[string]any{"message": "hello"}, "hello")
		}},
		{"error", p.checkError},
		{"structured", p.checkStructured},
		{"unicode", func(ctx context.Context) error {
			return p.expect(ctx, "echo", map[string]any{"message": unicode}, unicode)
		}},
		{"large", func(ctx context.Context) error {
			return p.expect(ctx, "large", map[string]any{"bytes": large}, strings.Repeat("x", large))
		}},
		{"concurrent", p.checkConcurrent},
		{"pagination", func(ctx context.Context) error {
			_, pages, err := p.pages(ctx)
			if err == nil && pages < plan.LeastPages {
				err = fmt.Errorf("%d page(s) of tools", pages)
			}
			return err
		}},
		{"log", p.checkLog},
		{"progress", p.checkProgress},
		{"cancel", p.checkCancel},
		{"resources", p.checkResources},
		{"templates", p.checkTemplates},
		{"subscribe", p.checkSubscribe},
		{"prompts", p.checkPrompts},
		{"completion", p.checkCompletion},
		{"elicit", func(ctx context.Context) error { return p.expect(ctx, "confirm", nil, "Ada is sure") }},
		{"sample", func(ctx context.Context) error {
			return p.expect(ctx, "sample", map[string]any{"message": "hi"}, "parrot: hi")
		}},
		{"roots", func(ctx context.Context) error {
			uris, err := p.text(ctx, "where", nil, nil)
			return errors.Join(err, same(strings.Fields(uris), []string{"file:///one", "file:///two"}))
		}},
	} {
		if slices.Contains(plan.Skip, one.feature) {
			continue
		}
		ctx, cancel := context.WithTimeout(context.Background(), featureSeconds*time.Second)
		err := one.run(ctx)
		cancel()
		if err != nil {
			report(one.feature, "fail", fmt.Sprintf("%.600s", err.Error()))
		} else {
			report(one.feature, "pass", "")
		}
	}
	return p.Close()
}

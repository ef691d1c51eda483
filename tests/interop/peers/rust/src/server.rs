use std::{
    error::Error,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use axum::serve::ListenerExt;
use rmcp::{
    ErrorData, Peer, RoleServer, ServerHandler, ServiceExt,
    model::*,
    service::{RequestContext, SubscriptionContext, SubscriptionSink},
    transport::{
        stdio,
        streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService, session::local::LocalSessionManager},
    },
};
use serde_json::{Value, json};

use crate::made;

const PAGE: usize = 5;
const PIXEL: &str = "iVBORw0KGgo=";

#[derive(Default)]
struct State {
    cancellations: AtomicUsize,
    level: Mutex<Option<LoggingLevel>>,
    subscribers: Mutex<Vec<Peer<RoleServer>>>,
    accepted: AtomicUsize, // subscriptions, each of which becomes a sink after it was acknowledged
    sinks: Mutex<Vec<SubscriptionSink>>,
}

#[derive(Clone, Default)]
struct Fixture {
    state: Arc<State>,
}

fn failed(problem: impl std::fmt::Display) -> ErrorData {
    ErrorData::internal_error(problem.to_string(), None)
}

fn text(words: impl Into<String>) -> CallToolResponse {
    CallToolResult::success(vec![ContentBlock::text(words.into())]).into()
}

fn input(key: &str, request: Value, state: Option<String>) -> CallToolResponse {
    let requests = made(json!({ key: request }));
    InputRequiredResult::new(Some(requests), state).into()
}

fn form(message: &str, name: &str, kind: &str) -> Value {
    let schema = json!({"type": "object", "properties": {name: {"type": kind}}, "required": [name]});
    json!({"mode": "form", "message": message, "requestedSchema": schema})
}

fn tools() -> Vec<Tool> {
    let number = json!({"type": "number"});
    let word = json!({"type": "string"});
    let schemas = [
        ("add", json!({"a": number, "b": number})),
        ("cancelled", json!({})),
        ("confirm", json!({})),
        ("echo", json!({"message": word})),
        ("fail", json!({})),
        ("large", json!({"bytes": number})),
        ("sample", json!({"message": word})),
        ("steps", json!({"to": number})),
        ("touch", json!({})),
        ("wait", json!({})),
        ("where", json!({})),
    ];
    let tool = |(name, properties): (&str, Value)| {
        let mut tool = json!({"name": name, "inputSchema": {"type": "object", "properties": properties}});
        if name == "add" {
            tool["outputSchema"] = json!({"type": "object", "properties": {"sum": number}});
        }
        made(tool)
    };
    schemas.into_iter().map(tool).collect()
}

fn is_modern(context: &RequestContext<RoleServer>) -> bool {
    context.protocol_version() >= Some(ProtocolVersion::V_2026_07_28)
}

/// Counts a cancellation however `wait` learns of it: by its token, by a notification that cannot be sent any more, or by being
/// dropped.
struct Waiting<'a> {
    cancellations: &'a AtomicUsize,
    ended: bool,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if !self.ended {
            self.cancellations.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Fixture {
    async fn progress(&self, context: &RequestContext<RoleServer>, step: usize, of: usize, message: &str) -> Result<(), ErrorData> {
        let Some(token) = context.meta.get_progress_token() else {
            return Ok(());
        };
        let params = ProgressNotificationParam::new(token, step as f64).with_total(of as f64).with_message(message);
        context.peer.notify_progress(params).await.map_err(failed)
    }

    async fn log(&self, context: &RequestContext<RoleServer>, level: LoggingLevel, words: String) -> Result<(), ErrorData> {
        let wanted = match is_modern(context) {
            true => context.meta.log_level(),
            false => *self.state.level.lock().unwrap(),
        };
        if wanted.is_none_or(|wanted| (level as usize) < (wanted as usize)) {
            return Ok(());
        }
        let params = made(json!({"level": level, "data": words}));
        context.peer.notify_logging_message(params).await.map_err(failed)
    }

    async fn steps(&self, to: usize, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        for number in 1..=to {
            self.progress(&context, number, to, &format!("step {number}")).await?;
            self.log(&context, LoggingLevel::Info, format!("at step {number}")).await?;
        }
        self.log(&context, LoggingLevel::Debug, "done".into()).await?;
        Ok(text(format!("{to} steps")))
    }

    async fn wait(&self, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let mut waiting = Waiting { cancellations: &self.state.cancellations, ended: false };
        self.progress(&context, 1, 1, "").await?;
        tokio::select! {
            _ = context.ct.cancelled() => Ok(text("cancelled")),
            _ = tokio::time::sleep(Duration::from_secs(60)) => {
                waiting.ended = true;
                Ok(text("nobody cancelled it"))
            }
        }
    }

    async fn cancelled(&self) -> CallToolResponse {
        for _ in 0..500 {
            let times = self.state.cancellations.load(Ordering::SeqCst);
            if times > 0 {
                return text(times.to_string());
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        text("never")
    }

    /// A question and its answer, as JSON: a request in the legacy era, a round in the modern one.
    async fn ask(
        &self,
        method: &str,
        params: Value,
        request: &CallToolRequestParams,
        context: &RequestContext<RoleServer>,
    ) -> Result<Option<Value>, ErrorData> {
        if is_modern(context) {
            return Ok(request.input_responses.as_ref().and_then(|all| all.get(method)).map(|one| json!(one)));
        }
        let answer = match method {
            "sampling/createMessage" => json!(context.peer.create_message(made(params)).await.map_err(failed)?),
            "roots/list" => json!(context.peer.list_roots().await.map_err(failed)?),
            _ => json!(context.peer.create_elicitation(made(params)).await.map_err(failed)?),
        };
        Ok(Some(answer))
    }

    async fn confirm(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        const METHOD: &str = "elicitation/create";
        let (name, sure) = (form("Who are you?", "name", "string"), form("Are you sure?", "sure", "boolean"));
        let round = |params: Value, state| Ok(input(METHOD, json!({"method": METHOD, "params": params}), state));
        let Some(answer) = self.ask(METHOD, name.clone(), &request, &context).await? else {
            return round(name, None);
        };
        let (who, second) = match &request.request_state {
            Some(who) => (who.clone(), answer),
            None => {
                let who = answer["content"]["name"].as_str().unwrap_or_default().to_owned();
                if is_modern(&context) {
                    return round(sure, Some(who));
                }
                (who, self.ask(METHOD, sure, &request, &context).await?.unwrap_or_default())
            }
        };
        let is_sure = second["content"]["sure"] == json!(true);
        Ok(text(format!("{who} is {}", if is_sure { "sure" } else { "not sure" })))
    }

    async fn sample(&self, message: &str, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        const METHOD: &str = "sampling/createMessage";
        let question = json!({"role": "user", "content": {"type": "text", "text": message}});
        let params = json!({"messages": [question], "maxTokens": 50});
        let Some(answer) = self.ask(METHOD, params.clone(), &request, &context).await? else {
            return Ok(input(METHOD, json!({"method": METHOD, "params": params}), None));
        };
        let content = match &answer["content"] {
            Value::Array(blocks) => blocks[0].clone(),
            one => one.clone(),
        };
        let (model, words) = (&answer["model"], &content["text"]);
        Ok(text(format!("{}: {}", model.as_str().unwrap_or("?"), words.as_str().unwrap_or("?"))))
    }

    async fn where_(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        const METHOD: &str = "roots/list";
        let Some(answer) = self.ask(METHOD, json!({}), &request, &context).await? else {
            return Ok(input(METHOD, json!({"method": METHOD}), None));
        };
        let roots = answer["roots"].as_array().cloned().unwrap_or_default();
        let uris: Vec<&str> = roots.iter().filter_map(|root| root["uri"].as_str()).collect();
        Ok(text(uris.join(" ")))
    }

    async fn touch(&self) -> CallToolResponse {
        while self.state.sinks.lock().unwrap().len() < self.state.accepted.load(Ordering::SeqCst) {
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
        let sinks = self.state.sinks.lock().unwrap().clone();
        for sink in sinks {
            let _ = sink.notify_resource_updated("memo://one").await;
        }
        let subscribers = self.state.subscribers.lock().unwrap().clone();
        for peer in subscribers {
            let _ = peer.notify_resource_updated(made(json!({"uri": "memo://one"}))).await;
        }
        text("touched")
    }
}

impl ServerHandler for Fixture {
    fn get_info(&self) -> ServerConfig {
        ServerConfig::new(made(json!({
            "tools": {}, "prompts": {}, "resources": {"subscribe": true}, "logging": {}, "completions": {}
        })))
    }

    async fn list_tools(&self, request: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListToolsResult, ErrorData> {
        let begin: usize = request.and_then(|page| page.cursor).and_then(|cursor| cursor.parse().ok()).unwrap_or(0);
        let all = tools();
        let end = (begin + PAGE).min(all.len());
        let mut page = json!({"tools": all[begin..end]});
        if end < all.len() {
            page["nextCursor"] = json!(end.to_string());
        }
        Ok(made(page))
    }

    async fn call_tool(&self, request: CallToolRequestParams, context: RequestContext<RoleServer>) -> Result<CallToolResponse, ErrorData> {
        let arguments = json!(request.arguments.clone().unwrap_or_default());
        let count = |name: &str| arguments[name].as_f64().unwrap_or(0.0) as usize;
        let message = arguments["message"].as_str().unwrap_or_default().to_owned();
        match request.name.as_ref() {
            "echo" => Ok(text(message)),
            "add" => {
                let number = |name: &str| arguments[name].as_f64().unwrap_or(0.0);
                Ok(CallToolResult::structured(json!({"sum": number("a") + number("b")})).into())
            }
            "fail" => Ok(CallToolResult::error(vec![ContentBlock::text("it does not work")]).into()),
            "large" => Ok(text("x".repeat(count("bytes")))),
            "steps" => self.steps(count("to"), context).await,
            "wait" => self.wait(context).await,
            "cancelled" => Ok(self.cancelled().await),
            "confirm" => self.confirm(request, context).await,
            "sample" => self.sample(&message, request, context).await,
            "where" => self.where_(request, context).await,
            "touch" => Ok(self.touch().await),
            other => Err(ErrorData::invalid_params(format!("Unknown tool: {other}"), None)),
        }
    }

    async fn list_resources(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListResourcesResult, ErrorData> {
        Ok(made(json!({"resources": [
            {"uri": "memo://one", "name": "one", "mimeType": "text/plain"},
            {"uri": "pixel://red", "name": "pixel", "mimeType": "image/png"},
        ]})))
    }

    async fn list_resource_templates(
        &self,
        _: Option<PaginatedRequestParams>,
        _: RequestContext<RoleServer>,
    ) -> Result<ListResourceTemplatesResult, ErrorData> {
        Ok(made(json!({"resourceTemplates": [{"uriTemplate": "memos://{name}", "name": "memos"}]})))
    }

    async fn read_resource(&self, request: ReadResourceRequestParams, _: RequestContext<RoleServer>) -> Result<ReadResourceResponse, ErrorData> {
        let uri = request.uri;
        let contents = if uri == "memo://one" {
            json!({"uri": uri, "mimeType": "text/plain", "text": "the first memo"})
        } else if uri == "pixel://red" {
            json!({"uri": uri, "mimeType": "image/png", "blob": PIXEL})
        } else if let Some(name) = uri.strip_prefix("memos://") {
            json!({"uri": uri, "mimeType": "text/plain", "text": format!("memo {name}")})
        } else {
            return Err(ErrorData::resource_not_found("Resource not found", None));
        };
        let result: ReadResourceResult = made(json!({"contents": [contents]}));
        Ok(result.into())
    }

    async fn list_prompts(&self, _: Option<PaginatedRequestParams>, _: RequestContext<RoleServer>) -> Result<ListPromptsResult, ErrorData> {
        Ok(made(json!({"prompts": [{"name": "greet", "arguments": [{"name": "name", "required": true}]}]})))
    }

    async fn get_prompt(&self, request: GetPromptRequestParams, _: RequestContext<RoleServer>) -> Result<GetPromptResponse, ErrorData> {
        let arguments = json!(request.arguments);
        let words = format!("Say hello to {}", arguments["name"].as_str().unwrap_or_default());
        let result: GetPromptResult = made(json!({"messages": [{"role": "user", "content": {"type": "text", "text": words}}]}));
        Ok(result.into())
    }

    async fn complete(&self, request: CompleteRequestParams, _: RequestContext<RoleServer>) -> Result<CompleteResult, ErrorData> {
        let names = ["alice", "albert", "bob"];
        let values: Vec<&str> = names.into_iter().filter(|name| name.starts_with(&request.argument.value)).collect();
        Ok(made(json!({"completion": {"total": values.len(), "hasMore": false, "values": values}})))
    }

    async fn set_level(&self, request: SetLevelRequestParams, _: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        *self.state.level.lock().unwrap() = Some(request.level);
        Ok(())
    }

    async fn subscribe(&self, _: SubscribeRequestParams, context: RequestContext<RoleServer>) -> Result<(), ErrorData> {
        self.state.subscribers.lock().unwrap().push(context.peer);
        Ok(())
    }

    fn accepted_subscription_filter(&self, requested: &SubscriptionFilter) -> Option<SubscriptionFilter> {
        self.state.accepted.fetch_add(1, Ordering::SeqCst);
        Some(requested.clone())
    }

    async fn listen(&self, context: SubscriptionContext) -> Result<(), ErrorData> {
        self.state.sinks.lock().unwrap().push(context.sink().clone());
        context.cancelled().await;
        Ok(())
    }
}

pub async fn serve(transport: &str) -> Result<(), Box<dyn Error>> {
    let fixture = Fixture::default();
    if transport == "stdio" {
        fixture.serve(stdio()).await?.waiting().await?;
        return Ok(());
    }
    // JSON needs a server without sessions.
    let json = transport == "json";
    let config = StreamableHttpServerConfig::default().with_legacy_session_mode(!json).with_json_response(json);
    let make = move || Ok(fixture.clone());
    let service: StreamableHttpService<Fixture, LocalSessionManager> = StreamableHttpService::new(make, Default::default(), config);
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
    eprintln!("listening on http://{}", listener.local_addr()?);
    // Without it every answer as events waits for the client's delayed acknowledgement.
    let listener = listener.tap_io(|stream| drop(stream.set_nodelay(true)));
    axum::serve(listener, axum::Router::new().nest_service("/mcp", service)).await?;
    Ok(())
}

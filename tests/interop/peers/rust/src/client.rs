use std::{error::Error, process::Stdio, time::Duration};

use rmcp::{
    ClientHandler, ClientLifecycleMode, ClientServiceExt, ErrorData, RoleClient,
    model::*,
    service::{NotificationContext, RequestContext, RunningService, Subscription},
    transport::{StreamableHttpClientTransport, TokioChildProcess},
};
use serde_json::{Value, json};
use tokio::sync::{Mutex, mpsc};

use crate::made;

type Outcome<T = ()> = Result<T, Box<dyn Error>>;

const FEATURE_SECONDS: u64 = 60;
const LARGE: usize = 1 << 20;
const UNICODE: &str = "h\u{e9}llo\n\u{1f600} \u{6f22}\u{5b57} \u{2028} \"\\ \u{1}";
const TOOLS: [&str; 11] = ["add", "cancelled", "confirm", "echo", "fail", "large", "sample", "steps", "touch", "wait", "where"];

fn report(feature: &str, status: &str, reason: &str) {
    println!("{}", json!({"feature": feature, "status": status, "reason": reason}));
}

fn same(got: Value, wanted: Value) -> Outcome {
    if got == wanted {
        return Ok(());
    }
    let short = |value: Value| value.to_string().chars().take(300).collect::<String>();
    Err(format!("got {}, wanted {}", short(got), short(wanted)).into())
}

/// Answers the server's questions, and passes on what it says.
struct Handler {
    said: mpsc::UnboundedSender<(&'static str, Value)>,
}

impl ClientHandler for Handler {
    fn get_info(&self) -> ClientConfig {
        let mut info = ClientConfig::default();
        info.capabilities = made(json!({"roots": {}, "sampling": {}, "elicitation": {}}));
        info
    }

    async fn create_message(&self, params: CreateMessageRequestParams, _: RequestContext<RoleClient>) -> Result<CreateMessageResult, ErrorData> {
        let asked = json!(params)["messages"][0]["content"].clone();
        let content = if asked.is_array() { asked[0].clone() } else { asked };
        Ok(made(json!({"model": "parrot", "role": "assistant", "content": content})))
    }

    async fn list_roots(&self, _: RequestContext<RoleClient>) -> Result<ListRootsResult, ErrorData> {
        Ok(made(json!({"roots": [{"uri": "file:///one"}, {"uri": "file:///two"}]})))
    }

    async fn create_elicitation(&self, request: ElicitRequestParams, _: RequestContext<RoleClient>) -> Result<ElicitResult, ErrorData> {
        let wants_name = json!(request)["requestedSchema"]["properties"].get("name").is_some();
        let content = if wants_name { json!({"name": "Ada"}) } else { json!({"sure": true}) };
        Ok(made(json!({"action": "accept", "content": content})))
    }

    async fn on_progress(&self, params: ProgressNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.said.send(("progress", json!([params.progress, params.total, params.message])));
    }

    async fn on_logging_message(&self, params: LoggingMessageNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.said.send(("log", params.data));
    }

    async fn on_resource_updated(&self, params: ResourceUpdatedNotificationParam, _: NotificationContext<RoleClient>) {
        let _ = self.said.send(("updated", json!(params)["uri"].clone()));
    }
}

struct Peer {
    service: RunningService<RoleClient, Handler>,
    said: Mutex<mpsc::UnboundedReceiver<(&'static str, Value)>>,
    subscription: Mutex<Option<Subscription>>,
    prefix: String,
    least_pages: usize,
    modern: bool,
}

impl Peer {
    /// The next notification of a kind; others are dropped.
    async fn next(&self, kind: &str) -> Value {
        loop {
            match self.said.lock().await.recv().await {
                Some((said, value)) if said == kind => return value,
                Some(_) => continue,
                None => std::future::pending().await,
            }
        }
    }

    async fn drain(&self) {
        while self.said.lock().await.try_recv().is_ok() {}
    }

    fn params(&self, tool: &str, arguments: Value) -> CallToolRequestParams {
        made(json!({"name": format!("{}{tool}", self.prefix), "arguments": arguments}))
    }

    async fn call(&self, tool: &str, arguments: Value) -> Outcome<Value> {
        Ok(json!(self.service.call_tool(self.params(tool, arguments)).await?))
    }

    async fn text(&self, tool: &str, arguments: Value) -> Outcome<String> {
        let result = self.call(tool, arguments).await?;
        let words = result["content"][0]["text"].as_str().unwrap_or_default().to_owned();
        if result["isError"] == json!(true) {
            return Err(format!("{tool} answered with the error {words:?}").into());
        }
        Ok(words)
    }

    async fn expect(&self, tool: &str, arguments: Value, wanted: &str) -> Outcome {
        same(json!(self.text(tool, arguments).await?), json!(wanted))
    }

    async fn pages(&self) -> Outcome<usize> {
        let (mut names, mut pages, mut cursor) = (Vec::new(), 0, None);
        loop {
            let asked = cursor.map(|cursor: Value| made(json!({"cursor": cursor})));
            let page = json!(self.service.peer().list_tools(asked).await?);
            pages += 1;
            names.extend(page["tools"].as_array().cloned().unwrap_or_default().into_iter().map(|tool| tool["name"].clone()));
            cursor = page.get("nextCursor").cloned().filter(|next| !next.is_null());
            if cursor.is_none() {
                break;
            }
        }
        for tool in TOOLS {
            if !names.contains(&json!(format!("{}{tool}", self.prefix))) {
                return Err(format!("no tool {tool} in {names:?}").into());
            }
        }
        Ok(pages)
    }

    async fn run(&self, feature: &str) -> Outcome {
        match feature {
            "list" => self.pages().await.map(|_| ()),
            "call" => self.expect("echo", json!({"message": "hello"}), "hello").await,
            "error" => self.error().await,
            "structured" => same(self.call("add", json!({"a": 2, "b": 3.5})).await?["structuredContent"].clone(), json!({"sum": 5.5})),
            "unicode" => self.expect("echo", json!({"message": UNICODE}), UNICODE).await,
            "large" => self.expect("large", json!({"bytes": LARGE}), &"x".repeat(LARGE)).await,
            "concurrent" => self.concurrent().await,
            "pagination" => match self.pages().await? {
                pages if pages < self.least_pages => Err(format!("{pages} page(s) of tools").into()),
                _ => Ok(()),
            },
            "log" => self.log().await,
            "progress" => self.progress().await,
            "cancel" => self.cancel().await,
            "resources" => self.resources().await,
            "templates" => self.templates().await,
            "subscribe" => self.subscribe().await,
            "prompts" => self.prompts().await,
            "completion" => self.completion().await,
            "elicit" => self.expect("confirm", json!({}), "Ada is sure").await,
            "sample" => self.expect("sample", json!({"message": "hi"}), "parrot: hi").await,
            _ => same(json!(self.text("where", json!({})).await?.trim()), json!("file:///one file:///two")),
        }
    }

    async fn error(&self) -> Outcome {
        let result = self.call("fail", json!({})).await?;
        let words = result["content"][0]["text"].as_str().unwrap_or_default();
        if result["isError"] != json!(true) || !words.contains("it does not work") {
            return Err(format!("the tool's own words are lost: {result}").into());
        }
        match self.call("missing", json!({})).await {
            Ok(result) if result["isError"] != json!(true) => Err("a tool that does not exist was not refused".into()),
            _ => Ok(()),
        }
    }

    async fn concurrent(&self) -> Outcome {
        let echo = |number: usize| async move {
            let message = format!("message {number}");
            self.expect("echo", json!({"message": message}), &message).await
        };
        futures::future::try_join_all((0..40).map(echo)).await.map(|_| ())
    }

    async fn log(&self) -> Outcome {
        let mut params = self.params("steps", json!({"to": 2}));
        if self.modern {
            params.meta = Some(made(json!({"io.modelcontextprotocol/logLevel": "info"})));
        } else {
            self.service.peer().set_level(made(json!({"level": "info"}))).await?;
        }
        self.service.call_tool(params).await?;
        // The SDK runs the handlers of notifications side by side, so that they may be seen in another order.
        let mut said = vec![self.next("log").await.to_string(), self.next("log").await.to_string()];
        said.sort();
        same(json!(said), json!(["\"at step 1\"", "\"at step 2\""]))
    }

    async fn progress(&self) -> Outcome {
        self.expect("steps", json!({"to": 3}), "3 steps").await?;
        let mut steps = Vec::new();
        while steps.len() < 3 {
            let step = self.next("progress").await;
            // Every request has a progress token: there may be progress of an earlier call.
            if step[1] == json!(3.0) {
                steps.push(step.to_string());
            }
        }
        steps.sort();
        let wanted: Vec<String> = (1..=3).map(|number| json!([f64::from(number), 3.0, format!("step {number}")]).to_string()).collect();
        same(json!(steps), json!(wanted))
    }

    async fn cancel(&self) -> Outcome {
        self.drain().await;
        // To drop the call is to cancel it.
        tokio::select! {
            result = self.call("wait", json!({})) => return Err(format!("wait was not cancelled: {result:?}").into()),
            _ = self.next("progress") => {}
        }
        self.expect("cancelled", json!({}), "1").await
    }

    async fn resources(&self) -> Outcome {
        let listed = json!(self.service.peer().list_all_resources().await?);
        let uris: Vec<&Value> = listed.as_array().into_iter().flatten().map(|one| &one["uri"]).collect();
        if !uris.contains(&&json!("memo://one")) || !uris.contains(&&json!("pixel://red")) {
            return Err(format!("the resources are {uris:?}").into());
        }
        same(self.read("memo://one").await?["text"].clone(), json!("the first memo"))?;
        let pixel = self.read("pixel://red").await?;
        same(json!([pixel["mimeType"], pixel["blob"].as_str().map(|blob| &blob[..8])]), json!(["image/png", "iVBORw0K"]))?;
        match self.read("nothing://here").await {
            Ok(_) => Err("a resource that does not exist was not refused".into()),
            Err(_) => Ok(()),
        }
    }

    async fn read(&self, uri: &str) -> Outcome<Value> {
        let result = self.service.read_resource(made(json!({"uri": uri}))).await?;
        Ok(json!(result)["contents"][0].clone())
    }

    async fn templates(&self) -> Outcome {
        let listed = json!(self.service.peer().list_all_resource_templates().await?);
        same(json!(listed.as_array().into_iter().flatten().any(|one| one["uriTemplate"] == json!("memos://{name}"))), json!(true))?;
        same(self.read("memos://two").await?["text"].clone(), json!("memo two"))
    }

    async fn subscribe(&self) -> Outcome {
        if !self.modern {
            self.service.peer().subscribe(made(json!({"uri": "memo://one"}))).await?;
            self.expect("touch", json!({}), "touched").await?;
            return same(self.next("updated").await, json!("memo://one"));
        }
        let filter = made(json!({"resourceSubscriptions": ["memo://one"]}));
        let mut subscription = self.service.peer().listen(filter).await?;
        self.expect("touch", json!({}), "touched").await?;
        let update = json!(subscription.next().await?);
        *self.subscription.lock().await = Some(subscription);
        same(update["params"]["uri"].clone(), json!("memo://one"))
    }

    async fn prompts(&self) -> Outcome {
        let listed = json!(self.service.peer().list_all_prompts().await?);
        let name = format!("{}greet", self.prefix);
        same(json!(listed.as_array().into_iter().flatten().any(|one| one["name"] == json!(name))), json!(true))?;
        let prompt = json!(self.service.get_prompt(made(json!({"name": name, "arguments": {"name": "Ada"}}))).await?);
        same(prompt["messages"][0]["content"]["text"].clone(), json!("Say hello to Ada"))
    }

    async fn completion(&self) -> Outcome {
        let reference = json!({"type": "ref/prompt", "name": format!("{}greet", self.prefix)});
        let params = made(json!({"ref": reference, "argument": {"name": "name", "value": "al"}}));
        let answer = json!(self.service.peer().complete(params).await?);
        same(answer["completion"]["values"].clone(), json!(["alice", "albert"]))
    }
}

async fn connect(plan: &Value) -> Outcome<Peer> {
    let (sender, said) = mpsc::unbounded_channel();
    let handler = Handler { said: sender };
    let mode = match plan["mode"] == json!("legacy") {
        true => ClientLifecycleMode::Initialize,
        false => ClientLifecycleMode::Auto { preferred_versions: vec![ProtocolVersion::V_2026_07_28], legacy_version: None },
    };
    let service = if plan["transport"] == json!("stdio") {
        let words: Vec<String> = made(plan["command"].clone());
        let mut command = tokio::process::Command::new(&words[0]);
        command.args(&words[1..]);
        let (child, _) = TokioChildProcess::builder(command).stderr(Stdio::inherit()).spawn()?;
        handler.serve_with_lifecycle(child, mode).await?
    } else {
        let url = plan["url"].as_str().unwrap_or_default().to_owned();
        handler.serve_with_lifecycle(StreamableHttpClientTransport::from_uri(url), mode).await?
    };
    let revision = service.peer().peer_info().map(|info| info.protocol_version.to_string()).unwrap_or_default();
    report("connect", "pass", &revision);
    Ok(Peer {
        service,
        said: Mutex::new(said),
        subscription: Mutex::new(None),
        prefix: plan["prefix"].as_str().unwrap_or_default().to_owned(),
        least_pages: plan["least_pages"].as_u64().unwrap_or(2) as usize,
        modern: revision.as_str() >= "2026-07-28",
    })
}

/// Runs the checks. Those that make a gateway give the client a server of its own come last.
pub async fn check(plan: &str) -> Outcome {
    let plan: Value = serde_json::from_str(plan)?;
    let peer = match connect(&plan).await {
        Ok(peer) => peer,
        Err(problem) => {
            report("connect", "fail", &problem.to_string());
            return Err(problem);
        }
    };
    let skipped: Vec<String> = made(plan["skip"].clone());
    for feature in [
        "list",
        "call",
        "error",
        "structured",
        "unicode",
        "large",
        "concurrent",
        "pagination",
        "log",
        "progress",
        "cancel",
        "resources",
        "templates",
        "subscribe",
        "prompts",
        "completion",
        "elicit",
        "sample",
        "roots",
    ] {
        if skipped.iter().any(|one| one == feature) {
            continue;
        }
        match tokio::time::timeout(Duration::from_secs(FEATURE_SECONDS), peer.run(feature)).await {
            Ok(Ok(())) => report(feature, "pass", ""),
            Ok(Err(problem)) => report(feature, "fail", &problem.to_string()),
            Err(_) => report(feature, "fail", &format!("not finished in {FEATURE_SECONDS} s")),
        }
    }
    peer.service.cancel().await?;
    Ok(())
}

//! `peer server TRANSPORT REVISION`, `peer client PLAN`: the fixture on the Rust SDK.
//! Values are written as JSON and read into the SDK's types.
#![allow(deprecated)] // logging and the like are deprecated, and still there

mod client;
mod server;

use serde::de::DeserializeOwned;
use serde_json::Value;

/// The SDK's type for a JSON value that is known to fit.
pub fn made<T: DeserializeOwned>(value: Value) -> T {
    serde_json::from_value(value).expect("it fits the SDK's type")
}

#[tokio::main]
async fn main() {
    let words: Vec<String> = std::env::args().collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    let status = match words[1..] {
        ["server", transport, _revision] => server::serve(transport).await,
        ["client", plan, ..] => client::check(plan).await,
        _ => Err("usage: peer server TRANSPORT REVISION, peer client PLAN".into()),
    };
    if let Err(problem) = status {
        eprintln!("{problem}");
        std::process::exit(1);
    }
}

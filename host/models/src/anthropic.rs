//! `anthropic-messages`: POST {baseUrl}/v1/messages, streamed.

mod request;
mod stream;

use crate::exchange::{Endpoint, Reader, Wire};
use atomic_agent::model::{ModelRequest, ThinkingLevel};
use serde_json::Value;
use std::collections::BTreeMap;

const VERSION: &str = "2023-06-01";
/// Thinking between tool calls, for the models that do not have it by themselves.
const INTERLEAVED: &str = "interleaved-thinking-2025-05-14";

pub(crate) struct Anthropic;

impl Wire for Anthropic {
    fn url(&self, endpoint: &Endpoint) -> String {
        // Written with and without the version, as people have seen it elsewhere.
        let base = endpoint.info.base_url.trim_end_matches('/');
        format!("{}/v1/messages", base.strip_suffix("/v1").unwrap_or(base))
    }

    fn headers(
        &self,
        endpoint: &Endpoint,
        key: Option<&str>,
        request: &ModelRequest,
    ) -> BTreeMap<String, String> {
        let mut headers = BTreeMap::from([("anthropic-version".to_owned(), VERSION.to_owned())]);
        if let Some(key) = key {
            if endpoint.auth_header {
                headers.insert("authorization".to_owned(), format!("Bearer {key}"));
            } else {
                headers.insert("x-api-key".to_owned(), key.to_owned());
            }
        }
        let budget = endpoint.compat.thinking.unwrap_or_default() == crate::ThinkingStyle::Budget;
        if endpoint.info.reasoning && budget && request.thinking != ThinkingLevel::Off {
            headers.insert("anthropic-beta".to_owned(), INTERLEAVED.to_owned());
        }
        headers
    }

    fn payload(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value {
        request::body(&endpoint.info, &endpoint.compat, request)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<stream::Events>::default()
    }
}

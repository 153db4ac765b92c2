//! `google-generative-ai`: POST {baseUrl}/models/{id}:streamGenerateContent, as server-sent events.

mod request;
mod stream;

use crate::exchange::{Endpoint, Reader, Wire};
use atomic_agent::model::ModelRequest;
use serde_json::Value;
use std::collections::BTreeMap;

/// Keys of blocks that carry what the model signed: of text, and of calls.
const TEXT_SIGNATURE: &str = "textSignature";
const CALL_SIGNATURE: &str = "thoughtSignature";

pub(crate) struct Google;

impl Wire for Google {
    fn url(&self, endpoint: &Endpoint) -> String {
        let base = endpoint.info.base_url.trim_end_matches('/');
        // Written with and without the version, as people have seen it elsewhere.
        let last = base.rsplit('/').next().unwrap_or_default();
        let versioned = last.starts_with("v1");
        let version = if versioned { "" } else { "/v1beta" };
        let id = endpoint.info.id.strip_prefix("models/").unwrap_or(&endpoint.info.id);
        format!("{base}{version}/models/{id}:streamGenerateContent?alt=sse")
    }

    fn headers(&self, endpoint: &Endpoint, key: Option<&str>, _: &ModelRequest) -> BTreeMap<String, String> {
        let header = |key: &str| match endpoint.auth_header {
            true => ("authorization".to_owned(), format!("Bearer {key}")),
            false => ("x-goog-api-key".to_owned(), key.to_owned()),
        };
        key.map(header).into_iter().collect()
    }

    fn payload(&self, endpoint: &Endpoint, request: &ModelRequest) -> Value {
        request::body(&endpoint.info, &endpoint.compat, request)
    }

    fn reader(&self) -> Box<dyn Reader> {
        Box::<stream::Chunks>::default()
    }
}

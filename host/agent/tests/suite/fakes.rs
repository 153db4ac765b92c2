//! Small tools.

use async_trait::async_trait;
use atomic_agent::tool::*;
use serde_json::{Value, json};

type Body = Box<
    dyn Fn(ToolInvocation) -> futures_util::future::BoxFuture<'static, Result<ToolOutput, ToolError>>
        + Send
        + Sync,
>;

pub struct Fake {
    spec: ToolSpec,
    place: Concurrency,
    body: Body,
}

#[async_trait]
impl Tool for Fake {
    fn spec(&self) -> &ToolSpec {
        &self.spec
    }
    fn concurrency(&self, _: &Value) -> Concurrency {
        self.place.clone()
    }
    async fn execute(&self, call: ToolInvocation) -> Result<ToolOutput, ToolError> {
        (self.body)(call).await
    }
}

impl Fake {
    pub fn new<F>(
        name: &str,
        required: &str,
        body: impl Fn(ToolInvocation) -> F + Send + Sync + 'static,
    ) -> Self
    where
        F: Future<Output = Result<ToolOutput, ToolError>> + Send + 'static,
    {
        let spec = ToolSpec {
            name: name.into(),
            label: name.into(),
            description: name.into(),
            parameters: json!({
                "type": "object",
                "properties": {required: {"type": "string"}},
                "required": [required],
            }),
            prompt_snippet: None,
            prompt_guidelines: vec![],
            execution_mode: ExecutionMode::Parallel,
            max_result_size_chars: None,
            output_schema: None,
            constrained_sampling: None,
            structured_output: false,
            render_shell: None,
            source: ToolSource::Builtin,
        };
        Fake { spec, place: Concurrency::Shared, body: Box::new(move |call| Box::pin(body(call))) }
    }
    pub fn sequential(mut self) -> Self {
        self.spec.execution_mode = ExecutionMode::Sequential;
        self
    }
    pub fn placed(mut self, place: Concurrency) -> Self {
        self.place = place;
        self
    }
    pub fn of_extension(mut self) -> Self {
        self.spec.source = ToolSource::Extension { id: "x".into(), path: "/x".into() };
        self
    }
}

/// `echo X` says X; anything that is no text is an error that names the field.
pub fn bash() -> Fake {
    Fake::new("bash", "command", |call| async move {
        let Some(command) = call.args["command"].as_str() else {
            return Err(ToolError("command: must be a string".into()));
        };
        (call.update)(PartialResult::default());
        let said = command.strip_prefix("echo ").unwrap_or("?");
        Ok(ToolOutput { details: Some(json!({"exitCode": 0})), ..ToolOutput::text(format!("{said}\n")) })
    })
}

pub fn read() -> Fake {
    Fake::new("read", "path", |_| async { Ok(ToolOutput::text("content")) })
}

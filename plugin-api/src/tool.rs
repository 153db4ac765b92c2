//! Tools: what the model can call (events.md E.2).

use crate::{
    abi::instance::{Call, Handler, Outcome},
    context::Context,
    error::{Error, Result},
    extension::Extension,
    protocol::{
        message::Content,
        registry::RegisterTool,
        render::{RenderOptions, Rendering, ToolView},
        tool::{ToolExecute, ToolResult, ToolUpdate},
    },
    signal::CancelSignal,
};
use schemars::{JsonSchema, generate::SchemaSettings};
use serde::{Serialize, de::DeserializeOwned};
use serde_json::{Value, json};
use std::{
    marker::PhantomData,
    ops::Deref,
    path::{Path, PathBuf},
    sync::Arc,
};

/// A tool, ready to be registered. [`Tool::new`] begins one.
#[must_use = "give it to `pi.register_tool`"]
pub struct Tool {
    spec: RegisterTool,
    handler: Handler,
    parts: Parts,
    fault: Option<Error>,
}

/// Closures beside the one that runs.
#[derive(Default)]
struct Parts {
    prepare: Option<Handler>,
    concurrency: Option<Handler>,
    render_call: Option<Handler>,
    render_result: Option<Handler>,
}

impl Tool {
    /// A tool without parameters so far. The model calls it by `name` and is told the
    /// description.
    #[allow(clippy::new_ret_no_self)]
    pub fn new(name: impl Into<String>, description: impl Into<String>) -> ToolBuilder<Value> {
        let name = name.into();
        ToolBuilder {
            spec: RegisterTool {
                label: name.clone(),
                name,
                description: description.into(),
                parameters: json!({"type": "object", "properties": {}}),
                ..RegisterTool::default()
            },
            parts: Parts::default(),
            fault: None,
            params: PhantomData,
        }
    }
    /// The name the model calls.
    pub fn name(&self) -> &str {
        &self.spec.name
    }
    #[cfg(feature = "tokio")]
    pub(crate) fn into_handler(self) -> Handler {
        self.handler
    }
    /// JSON Schema of the parameters.
    pub fn parameters(&self) -> &Value {
        &self.spec.parameters
    }
}

/// A tool in the making; `run` or `run_sync` ends it.
#[must_use = "a tool ends with `.run(..)`"]
pub struct ToolBuilder<P> {
    spec: RegisterTool,
    parts: Parts,
    fault: Option<Error>,
    params: PhantomData<fn() -> P>,
}

impl<P> ToolBuilder<P> {
    /// The parameters as a type: `#[params]` on a struct. The
    /// model is shown its schema, doc comments included.
    pub fn params<Q: JsonSchema + DeserializeOwned>(mut self) -> ToolBuilder<Q> {
        let settings = SchemaSettings::draft2020_12().with(|s| {
            s.inline_subschemas = true;
            s.meta_schema = None;
        });
        let mut schema = settings.into_generator().into_root_schema_for::<Q>().to_value();
        if let Some(root) = schema.as_object_mut() {
            root.remove("title");
        }
        self.set_schema(schema);
        ToolBuilder { spec: self.spec, parts: self.parts, fault: self.fault, params: PhantomData }
    }
    /// The parameters as a JSON Schema of your own; `call.params` is then a JSON value.
    pub fn schema(mut self, schema: Value) -> ToolBuilder<Value> {
        self.set_schema(schema);
        ToolBuilder { spec: self.spec, parts: self.parts, fault: self.fault, params: PhantomData }
    }
    fn set_schema(&mut self, schema: Value) {
        if schema.get("type").and_then(Value::as_str) != Some("object") {
            self.fault = Some(Error::new(
                "bad_schema",
                format!(
                    "tool `{}`: the parameters must be a struct, so that their schema is an object",
                    self.spec.name
                ),
            ));
        }
        self.spec.parameters = schema;
    }
    /// What the user sees; default the name.
    pub fn label(mut self, label: impl Into<String>) -> Self {
        self.spec.label = label.into();
        self
    }
    /// One line for the list of tools in the system prompt; without it the tool is not listed there.
    pub fn prompt_snippet(mut self, snippet: impl Into<String>) -> Self {
        self.spec.prompt_snippet = Some(snippet.into());
        self
    }
    /// One bullet more in the system prompt while the tool is active.
    pub fn prompt_guideline(mut self, guideline: impl Into<String>) -> Self {
        self.spec.prompt_guidelines.push(guideline.into());
        self
    }
    /// A batch of calls with this one in it runs one after another.
    pub fn sequential(mut self) -> Self {
        self.spec.execution_mode = Some("sequential");
        self
    }
    /// Runs alone in its batch.
    pub fn exclusive(mut self) -> Self {
        self.spec.concurrency = Some("exclusive");
        self
    }
    /// Whether a call may run beside others of its batch, by its arguments: true is exclusive.
    /// What fails is exclusive.
    pub fn exclusive_if(mut self, f: impl Fn(&Value) -> Result<bool> + Send + Sync + 'static) -> Self {
        self.parts.concurrency = Some(asked(f));
        self
    }
    /// Brings arguments of other shapes into form, before they are checked. An error is what the
    /// model reads as the call's result.
    pub fn prepare_arguments(mut self, f: impl Fn(Value) -> Result<Value> + Send + Sync + 'static) -> Self {
        self.parts.prepare = Some(asked(move |args: &Value| f(args.clone())));
        self
    }
    /// How the provider is to constrain the arguments: `false`, `{"type": "json_schema", …}` or
    /// `{"type": "grammar", …}`. Kept as it is given, for providers that can.
    pub fn constrained_sampling(mut self, how: Value) -> Self {
        self.spec.constrained_sampling = Some(how);
        self
    }
    /// JSON Schema of [`ToolResult::structured`].
    pub fn output_schema(mut self, schema: Value) -> Self {
        self.spec.output_schema = Some(schema);
        self
    }
    /// The structured result of a call that ends the run is what print mode prints.
    pub fn structured_output(mut self) -> Self {
        self.spec.structured_output = true;
        self
    }
    /// Draws the call; without it, as the program draws calls.
    pub fn render_call(
        mut self,
        f: impl Fn(&ToolView, &RenderOptions) -> Result<Rendering> + Send + Sync + 'static,
    ) -> Self {
        self.parts.render_call = Some(drawn(f));
        self
    }
    /// Draws what there is of a result.
    pub fn render_result(
        mut self,
        f: impl Fn(&ToolView, &RenderOptions) -> Result<Rendering> + Send + Sync + 'static,
    ) -> Self {
        self.parts.render_result = Some(drawn(f));
        self
    }
    /// The extension draws the box around the call itself.
    pub fn render_shell_self(mut self) -> Self {
        self.spec.render_shell = Some("self");
        self
    }
    /// Characters of a result above which the host keeps it in a file; can only lower the
    /// host's own limit of 50,000.
    pub fn max_result_size_chars(mut self, chars: u64) -> Self {
        self.spec.max_result_size_chars = Some(chars);
        self
    }
}

impl<P: DeserializeOwned + Send + 'static> ToolBuilder<P> {
    /// What the tool does, on the calling thread: for what needs no waiting. Works without
    /// the feature `tokio`.
    pub fn run_sync<F, R>(self, f: F) -> Tool
    where
        F: Fn(ToolCallCtx<P>, ToolContext) -> Result<R> + Send + Sync + 'static,
        R: Into<ToolResult>,
    {
        let handler = Handler::Sync(Arc::new(move |event, call| match begin::<P>(event.json(), call)? {
            Ok((invocation, ctx)) => outcome(f(invocation, ctx)?.into()),
            Err(refusal) => outcome(refusal),
        }));
        Tool { spec: self.spec, handler, parts: self.parts, fault: self.fault }
    }

    /// What the tool does. `call.params` are the arguments; an `Err` is what the model
    /// reads as the reason of the failure. When the user stops the run, `call.signal()` is
    /// raised, and the future may be dropped at any `.await`.
    #[cfg(feature = "tokio")]
    pub fn run<F, Fut, R>(self, f: F) -> Tool
    where
        F: FnOnce(ToolCallCtx<P>, ToolContext) -> Fut + Clone + Send + Sync + 'static,
        Fut: Future<Output = Result<R>> + Send + 'static,
        R: Into<ToolResult>,
    {
        let handler = Handler::Async(Arc::new(move |event, call| {
            let f = f.clone();
            Box::pin(async move {
                match begin::<P>(event.json(), call)? {
                    Ok((invocation, ctx)) => outcome(f(invocation, ctx).await?.into()),
                    Err(refusal) => outcome(refusal),
                }
            })
        }));
        Tool { spec: self.spec, handler, parts: self.parts, fault: self.fault }
    }
}

fn drawn(f: impl Fn(&ToolView, &RenderOptions) -> Result<Rendering> + Send + Sync + 'static) -> Handler {
    #[derive(serde::Deserialize)]
    struct Draw {
        value: ToolView,
        #[serde(default)]
        options: RenderOptions,
    }
    #[derive(Serialize)]
    struct Out {
        result: Rendering,
    }
    Handler::Sync(Arc::new(move |event, _| {
        let draw: Draw = serde_json::from_slice(event.json())?;
        Ok(serde_json::to_vec(&Out { result: f(&draw.value, &draw.options)? })?)
    }))
}

/// A question about arguments, answered where it is asked.
fn asked<R: Serialize>(f: impl Fn(&Value) -> Result<R> + Send + Sync + 'static) -> Handler {
    #[derive(serde::Deserialize)]
    struct Question {
        #[serde(default)]
        args: Value,
    }
    #[derive(Serialize)]
    struct Out<R> {
        result: R,
    }
    Handler::Sync(Arc::new(move |event, _| {
        let question: Question = serde_json::from_slice(event.json())?;
        Ok(serde_json::to_vec(&Out { result: f(&question.args)? })?)
    }))
}

fn outcome(result: ToolResult) -> Outcome {
    #[derive(Serialize)]
    struct Out {
        result: ToolResult,
    }
    Ok(serde_json::to_vec(&Out { result })?)
}

type Begun<P> = std::result::Result<(ToolCallCtx<P>, ToolContext), ToolResult>;

fn begin<P: DeserializeOwned>(event: &[u8], call: Call) -> Result<Begun<P>> {
    let execute: ToolExecute = serde_json::from_slice(event)?;
    let params = match lenient::<P>(&execute.params) {
        Ok(params) => params,
        Err(e) => {
            let what = match culprit::<P>(&execute.params) {
                Some(field) => format!("Invalid arguments for {}: field `{field}`: {e}", execute.tool_name),
                None => format!("Invalid arguments for {}: {e}", execute.tool_name),
            };
            return Ok(Err(ToolResult::error(what)));
        }
    };
    let ctx = ToolContext { ctx: Context::new(call), id: execute.tool_call_id.into() };
    let invocation = ToolCallCtx { params, raw: execute.params, cwd: execute.cwd, ctx: ctx.clone() };
    Ok(Ok((invocation, ctx)))
}

/// Models write `5.0` where a whole number is asked for, and the schema's `integer` allows
/// it; serde does not. Whole floats become integers when the value does not fit as it is.
pub(crate) fn lenient<T: DeserializeOwned>(value: &Value) -> serde_json::Result<T> {
    fn whole(value: &mut Value) {
        match value {
            Value::Number(n) => {
                // Beyond 2^53 a float no longer names one whole number.
                if let Some(f) = n.as_f64().filter(|f| n.is_f64() && f.fract() == 0.0 && f.abs() <= 9e15) {
                    *value = Value::from(f as i64);
                }
            }
            Value::Array(items) => items.iter_mut().for_each(whole),
            Value::Object(map) => map.values_mut().for_each(whole),
            _ => {}
        }
    }
    T::deserialize(value).or_else(|e| {
        let mut value = value.clone();
        whole(&mut value);
        T::deserialize(value).map_err(|_| e)
    })
}

/// Which argument does not fit: serde names lines only, so each argument gets its own.
fn culprit<P: DeserializeOwned>(params: &Value) -> Option<&str> {
    let object = params.as_object()?;
    let rows: Vec<String> = object.iter().map(|(k, v)| format!("{}:{v}", Value::from(k.as_str()))).collect();
    let error = serde_json::from_str::<P>(&format!("{{\n{}\n}}", rows.join(",\n"))).err()?;
    object.keys().nth(error.line().checked_sub(2)?).map(String::as_str)
}

/// One call of a tool: its arguments, and what belongs to it alone.
pub struct ToolCallCtx<P> {
    /// The arguments.
    pub params: P,
    raw: Value,
    cwd: PathBuf,
    ctx: ToolContext,
}

impl<P> ToolCallCtx<P> {
    /// The model's id for the call.
    pub fn id(&self) -> &str {
        self.ctx.tool_call_id()
    }
    /// The arguments as they came.
    pub fn raw_params(&self) -> &Value {
        &self.raw
    }
    /// The session's directory.
    pub fn cwd(&self) -> &Path {
        &self.cwd
    }
    /// See [`ToolContext::update`].
    ///
    /// # Errors
    /// `stale_context`.
    pub fn update(&self, partial: impl Into<ToolResult>) -> Result<()> {
        self.ctx.update(partial)
    }
    /// Raised when the user stops the run.
    pub fn signal(&self) -> CancelSignal {
        self.ctx.signal()
    }
}

/// The context of a running tool: all of [`Context`], and its partial results.
#[derive(Clone)]
pub struct ToolContext {
    ctx: Context,
    id: Arc<str>,
}

impl Deref for ToolContext {
    type Target = Context;
    fn deref(&self) -> &Context {
        &self.ctx
    }
}

impl ToolContext {
    /// The model's id for the call.
    pub fn tool_call_id(&self) -> &str {
        &self.id
    }
    /// Shows what there is so far: all of it, not what is new. Ignored once the tool has
    /// answered.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn update(&self, partial: impl Into<ToolResult>) -> Result<()> {
        let partial = partial.into();
        let content: &[Content] = &partial.content;
        self.ctx.call.tell("tool.update", &ToolUpdate { content, details: partial.details.as_ref() })
    }
}

impl Extension {
    /// Offers a tool to the model. The same name again replaces it; of two extensions with
    /// one name the first in load order wins, and a built-in tool gives way. (events.md E.2, I.5)
    pub fn register_tool(&self, tool: Tool) {
        let Tool { mut spec, handler, parts, fault } = tool;
        if let Some(fault) = fault {
            return self.registered(Err(fault));
        }
        spec.handler = self.add(handler);
        spec.prepare = parts.prepare.map(|h| self.add(h));
        spec.concurrency_handler = parts.concurrency.map(|h| self.add(h));
        spec.render_call = parts.render_call.map(|h| self.add(h));
        spec.render_result = parts.render_result.map(|h| self.add(h));
        self.registered(self.call.tell("tools.register", &spec));
    }
}

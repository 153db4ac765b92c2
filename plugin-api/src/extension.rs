//! `pi`: what an author registers with, and what acts on the session (events.md E.1).

use crate::{
    abi::instance::{Call, State},
    call::Empty,
    error::Result,
    protocol::{
        provider::ThinkingLevel,
        registry::{CommandInfo, Flag, FlagValue, RegisterFlag, ToolInfo},
        ui::Level,
    },
};
use serde::Serialize;
use std::sync::Arc;

/// The extension's handle to its host; `pi` in every example. Cheap to clone.
///
/// Registering works at any time and answers nothing: what the host refuses while
/// `activate` runs makes the activation fail, later it is logged. Members that act on the
/// session fail with `not_available` before there is one (that is: inside `activate`), and
/// with `stale_context` once this generation has been replaced.
#[derive(Clone)]
pub struct Extension {
    pub(crate) call: Call,
}

#[derive(Serialize)]
struct Name<'a> {
    name: &'a str,
}

impl Extension {
    pub(crate) fn new(state: Arc<State>) -> Self {
        Extension { call: state.outside() }
    }
    pub(crate) fn of(call: Call) -> Self {
        Extension { call }
    }
    /// A registration that failed: see the type's documentation.
    pub(crate) fn registered(&self, result: Result<()>) {
        if let Err(e) = result {
            self.call.state.registration_failed(e);
        }
    }

    /// Adds a flag to the command line: `--name`. (events.md E.1)
    pub fn register_flag(&self, name: &str, flag: Flag) {
        self.registered(self.call.tell("flags.register", &RegisterFlag { name, flag: &flag }));
    }
    /// What a flag of this extension was given, or its default. Inside `activate` the
    /// command line may not be read yet.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn get_flag(&self, name: &str) -> Result<Option<FlagValue>> {
        self.call.get("flags.get", &Name { name })
    }
    /// Names of the tools the model is offered.
    ///
    /// # Errors
    /// `not_available`, `stale_context`; here and below.
    pub fn get_active_tools(&self) -> Result<Vec<String>> {
        self.call.get("tools.getActive", &Empty {})
    }
    /// All tools, also those that are not offered now.
    ///
    /// # Errors
    /// `not_available`, `stale_context`.
    pub fn get_all_tools(&self) -> Result<Vec<ToolInfo>> {
        self.call.get("tools.getAll", &Empty {})
    }
    /// Commands of extensions, prompts and skills, in that order.
    ///
    /// # Errors
    /// `not_available`, `stale_context`.
    pub fn get_commands(&self) -> Result<Vec<CommandInfo>> {
        self.call.get("commands.getAll", &Empty {})
    }
    /// The name of the session.
    ///
    /// # Errors
    /// `not_available`, `stale_context`.
    pub fn get_session_name(&self) -> Result<Option<String>> {
        crate::session::SessionManager::new(self.call.clone()).get_session_name()
    }
    /// How much the model thinks.
    ///
    /// # Errors
    /// `not_available`, `stale_context`.
    pub fn get_thinking_level(&self) -> Result<ThinkingLevel> {
        let level: Option<ThinkingLevel> =
            self.call.get("ctx.get", &crate::protocol::context::CtxGet { member: "thinkingLevel" })?;
        Ok(level.unwrap_or_default())
    }
    /// Writes a line to the host's log, never to the terminal.
    pub fn log(&self, level: Level, message: impl AsRef<str>) {
        #[derive(Serialize)]
        struct Line<'a> {
            level: Level,
            message: &'a str,
        }
        // Nothing can be told to anybody when logging fails.
        let _ = self.call.tell("log", &Line { level, message: message.as_ref() });
    }
    /// A thread that the host knows: its panics are reported, a crash on it names this
    /// extension, and a reload waits a moment for it. It must end by itself.
    ///
    /// # Errors
    /// When the system refuses another thread.
    pub fn spawn_thread(&self, name: &str, f: impl FnOnce() + Send + 'static) -> Result<()> {
        Ok(self.call.state.spawn_thread(name, f)?)
    }
}

#[cfg(feature = "tokio")]
mod asynchronous {
    use super::{Extension, Name, Result, Serialize, ThinkingLevel};
    use crate::{
        abi::instance::Handler,
        call::Request,
        context::Context,
        protocol::{
            delivery::{SendOptions, UserMessageOptions},
            exec::{Exec, ExecResult},
            message::{CustomMessage, MessageContent},
            provider::Model,
        },
    };
    use std::{sync::Arc, time::Duration};

    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct SendMessage {
        message: CustomMessage,
        options: SendOptions,
    }
    #[derive(Serialize)]
    struct SendMessages {
        messages: Vec<CustomMessage>,
        options: SendOptions,
    }
    #[derive(Serialize)]
    struct SendUserMessage {
        content: MessageContent,
        #[serde(flatten)]
        options: UserMessageOptions,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct AppendEntry<'a, T: Serialize + ?Sized> {
        custom_type: &'a str,
        data: &'a T,
    }
    #[derive(serde::Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Appended {
        #[serde(default)]
        entry_id: String,
    }
    #[derive(Serialize)]
    #[serde(rename_all = "camelCase")]
    struct SetLabel<'a> {
        entry_id: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        label: Option<&'a str>,
    }
    #[derive(Serialize)]
    struct SetModel<'a> {
        provider: &'a str,
        model: &'a str,
    }
    #[derive(Serialize)]
    struct SetLevel {
        level: ThinkingLevel,
    }
    #[derive(Serialize)]
    struct SetTools {
        names: Vec<String>,
    }
    #[derive(Serialize)]
    struct Sleep {
        ms: u64,
    }

    impl Extension {
        /// Puts a message of the extension into the transcript. Resolves when it is queued
        /// or written, not when the model has read it. (events.md E.4)
        pub fn send_message(&self, message: CustomMessage, options: SendOptions) -> Request<()> {
            self.call.ask_done("sendMessage", &SendMessage { message, options })
        }
        /// A batch of them: admitted as a whole, in order, at most one run. It never interrupts.
        pub fn send_messages(&self, messages: Vec<CustomMessage>, options: SendOptions) -> Request<()> {
            self.call.ask_done("sendMessages", &SendMessages { messages, options })
        }
        /// Says something as the user would: goes through `input` handlers and starts a run.
        /// While one is going on it fails; see [`Extension::send_user_message_with`].
        pub fn send_user_message(&self, content: impl Into<MessageContent>) -> Request<()> {
            self.send_user_message_with(content, UserMessageOptions::default())
        }
        /// The same, with options.
        pub fn send_user_message_with(
            &self,
            content: impl Into<MessageContent>,
            options: UserMessageOptions,
        ) -> Request<()> {
            self.call.ask_done("sendUserMessage", &SendUserMessage { content: content.into(), options })
        }
        /// Keeps data in the session, out of the model's sight; the answer is the entry's
        /// id. Read it back with `ctx.session_manager().get_entries()` and
        /// [`data_as`](crate::protocol::session::SessionEntry::data_as).
        pub fn append_entry(&self, custom_type: &str, data: &(impl Serialize + ?Sized)) -> Request<String> {
            let asked: Request<Appended> = self.call.ask("appendEntry", &AppendEntry { custom_type, data });
            Request::new(async move { Ok(asked.await?.entry_id) })
        }
        /// Names the session; an empty name takes it away.
        pub fn set_session_name(&self, name: &str) -> Request<()> {
            self.call.ask_done("setSessionName", &Name { name })
        }
        /// Labels an entry, or takes the label away.
        pub fn set_label(&self, entry_id: &str, label: Option<&str>) -> Request<()> {
            self.call.ask_done("setLabel", &SetLabel { entry_id, label })
        }
        /// The model of the next request, for this session; false without credentials.
        pub fn set_model(&self, model: &Model) -> Request<bool> {
            self.call.ask("setModel", &SetModel { provider: &model.provider, model: &model.id })
        }
        /// How much the model thinks; clamped to what it can.
        pub fn set_thinking_level(&self, level: impl Into<ThinkingLevel>) -> Request<()> {
            self.call.ask_done("setThinkingLevel", &SetLevel { level: level.into() })
        }
        /// The tools the model is offered; unknown names are ignored.
        pub fn set_active_tools<I: IntoIterator<Item = S>, S: Into<String>>(&self, names: I) -> Request<()> {
            let names = names.into_iter().map(Into::into).collect();
            self.call.ask_done("setActiveTools", &SetTools { names })
        }
        /// Runs a program, without a shell, in the session's directory. A program that
        /// cannot be started is no error but code 1.
        pub fn exec<I: IntoIterator<Item = S>, S: Into<String>>(
            &self,
            command: impl Into<String>,
            args: I,
        ) -> Request<ExecResult> {
            self.exec_with(Exec::new(command).args(args))
        }
        /// The same, with options.
        pub fn exec_with(&self, exec: Exec) -> Request<ExecResult> {
            self.call.ask("exec", &exec)
        }
        /// Waits, by the host's clock; ends with `stale_context` when the generation does.
        pub fn sleep(&self, time: Duration) -> Request<()> {
            let ms = u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
            self.call.ask_done("sleep", &Sleep { ms })
        }

        /// A task that ends with this generation. Its panic or error is reported. The
        /// answer can end it earlier; dropping that ends nothing.
        pub fn spawn(&self, future: impl Future<Output = Result<()>> + Send + 'static) -> Task {
            match self.call.state.spawn(future) {
                Ok(abort) => Task(Some(abort)),
                Err(e) => {
                    self.registered(Err(e));
                    Task(None)
                }
            }
        }

        /// The extension is also a program: `atomic extension run ID -- ARGS`. The answer
        /// is the exit code. (boundary.md 14)
        pub fn main<F, Fut>(&self, f: F)
        where
            F: FnOnce(Vec<String>, Context) -> Fut + Clone + Send + Sync + 'static,
            Fut: Future<Output = Result<i32>> + Send + 'static,
        {
            #[derive(serde::Deserialize)]
            struct Args {
                #[serde(default)]
                args: Vec<String>,
            }
            #[derive(Serialize)]
            #[serde(rename_all = "camelCase")]
            struct Exit {
                exit_code: i32,
            }
            #[derive(Serialize)]
            struct Out {
                result: Exit,
            }
            #[derive(Serialize)]
            struct Register {
                handler: u64,
            }
            let handler = self.add(Handler::Async(Arc::new(move |event, call| {
                let f = f.clone();
                Box::pin(async move {
                    let args: Args = serde_json::from_slice(event.json())?;
                    let exit_code = f(args.args, Context::new(call)).await?;
                    Ok(serde_json::to_vec(&Out { result: Exit { exit_code } })?)
                })
            })));
            self.call.state.set_main(handler);
            self.registered(self.call.tell("main.register", &Register { handler }));
        }
    }

    /// A spawned task.
    #[derive(Clone)]
    pub struct Task(Option<tokio::task::AbortHandle>);

    impl Task {
        /// Drops it at its next `.await`.
        pub fn abort(&self) {
            if let Some(task) = &self.0 {
                task.abort();
            }
        }
        /// It has ended, one way or the other.
        pub fn is_finished(&self) -> bool {
            self.0.as_ref().is_none_or(tokio::task::AbortHandle::is_finished)
        }
    }
}

#[cfg(feature = "tokio")]
pub use asynchronous::Task;

/// `fn` or `async fn`: both can activate an extension.
#[doc(hidden)]
pub trait Activate<Marker> {
    fn run(&self, pi: &Extension) -> Result<()>;
}

#[doc(hidden)]
pub struct Plain;
impl<F: Fn(&Extension) -> Result<()>> Activate<Plain> for F {
    fn run(&self, pi: &Extension) -> Result<()> {
        self(pi)
    }
}

#[doc(hidden)]
#[cfg(feature = "tokio")]
pub struct Async;
#[cfg(feature = "tokio")]
impl<F: AsyncFn(&Extension) -> Result<()>> Activate<Async> for F {
    fn run(&self, pi: &Extension) -> Result<()> {
        pi.call.state.runtime()?.block_on(self(pi))
    }
}

#[doc(hidden)]
pub fn run<Marker, F: Activate<Marker>>(activate: &F, pi: &Extension) -> Result<()> {
    activate.run(pi)
}

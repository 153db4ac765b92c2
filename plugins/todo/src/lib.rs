//! A list of things to do that the model keeps and the user sees: tool `todo`, command
//! `/todos`.
//!
//! The list lives in the session: every change appends an entry, and `session_start` rebuilds
//! it from the last one on the branch. So it survives a reload and a resume, and another
//! session has its own.

mod list;

use atomic_plugin_api::prelude::*;
use list::{Action, Todos};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

export_extension!(activate, events: ["session_start"]);

/// The type of the session entries.
const ENTRY: &str = "todo";

/// What the model gives to `todo`.
#[derive(Clone, Debug, Serialize, Deserialize, JsonSchema)]
#[schemars(crate = "atomic_plugin_api::schemars")]
pub struct TodoParams {
    /// `add` needs `text`; `toggle` and `remove` need `id`.
    pub action: Action,
    /// What is to be done.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub text: Option<String>,
    /// The number `list` shows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<u64>,
}

type Shared = Arc<Mutex<Todos>>;

fn locked(todos: &Shared) -> MutexGuard<'_, Todos> {
    todos.lock().unwrap_or_else(PoisonError::into_inner)
}

fn activate(pi: &Extension) -> Result<()> {
    let todos = Shared::default();

    let state = todos.clone();
    pi.on_sync(SessionStart, move |_event, ctx| {
        let branch = ctx.session_manager().get_branch()?;
        let last = branch.iter().rev().find_map(|entry| entry.data_as::<Todos>(ENTRY));
        *locked(&state) = last.unwrap_or_default();
        Ok(())
    });

    let state = todos.clone();
    pi.register_tool(
        Tool::new("todo", "Keep a list of things to do: add, list, toggle, remove, clear")
            .prompt_snippet("Keep a list of things to do")
            .prompt_guideline("Use todo for work of several steps, and toggle each step when it is done")
            // Two changes of one batch come one after the other.
            .sequential()
            .params::<TodoParams>()
            .run(move |call, ctx| async move {
                let before = locked(&state).clone();
                let (after, said) = before.clone().apply(&call.params)?;
                if after != before {
                    // Written first: a list that the session does not have would be gone after a reload.
                    ctx.pi().append_entry(ENTRY, &after).await?;
                    *locked(&state) = after.clone();
                }
                Ok(ToolResult::text(said).details(after))
            }),
    );

    pi.register_command_with(Command::new("todos").description("Show the list of things to do").run(
        move |_args, ctx| async move {
            let text = locked(&todos).to_string();
            ctx.ui().notify(text, Level::Info)
        },
    ));
    Ok(())
}

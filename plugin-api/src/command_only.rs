//! What would make a handler wait for its own end does not exist on the context of an event
//! (events.md U9): each of these does not compile there, and does in a command.

macro_rules! command_only {
    ($($name:ident $member:literal;)*) => {$(
        #[doc = concat!(
            "```compile_fail,E0599\nuse atomic_plugin_api::{ForkPosition, NavigateTree, prelude::*};\n",
            "fn activate(pi: &Extension) -> Result<()> {\n",
            "    pi.on(SessionStart, |_, ctx| async move { ctx.", $member, ".await.map(drop) });\n",
            "    Ok(())\n}\n```\n\n",
            "```\nuse atomic_plugin_api::{ForkPosition, NavigateTree, prelude::*};\n",
            "fn activate(pi: &Extension) -> Result<()> {\n",
            "    pi.register_command(\"x\", |_, ctx| async move { ctx.", $member, ".await.map(drop) });\n",
            "    Ok(())\n}\n```\n",
        )]
        pub struct $name;
    )*};
}

command_only! {
    WaitForIdle "wait_for_idle()";
    Reload "reload()";
    ReloadNamed "reload_named([\"x\"])";
    NewSession "new_session(NewSession::new())";
    Fork "fork(\"id\", ForkPosition::Before, NewSession::new())";
    SwitchSession "switch_session(\"file\", NewSession::new())";
    NavigateTreeTo "navigate_tree(\"id\", &NavigateTree::default())";
    GetSystemPromptOptions "get_system_prompt_options()";
}

//! Keeps the model's `write`, `edit` and obvious shell redirections away from files that are
//! not its business: secrets, the insides of `.git`, installed packages, private keys.
//!
//! `--protect a,b/` adds to the list. Reading is not restricted. This stops accidents; a
//! command that wants to get around it can, because it reads shell lines only roughly.

mod bash;
mod rules;

use atomic_plugin_api::prelude::*;
use rules::Rules;
use std::{
    path::{Path, PathBuf},
    sync::{Arc, OnceLock},
};

export_extension!(activate, events: ["tool_call"]);

const FLAG: &str = "protect";

fn activate(pi: &Extension) -> Result<()> {
    pi.register_flag(
        FLAG,
        Flag::string().description("More protected paths, by comma: NAME, NAME* or FOLDER/"),
    );
    let rules: Arc<OnceLock<Rules>> = Arc::default();
    // Synchronous: it asks nobody. Late: it judges the arguments that will run.
    pi.on_sync_with(Phase::Late, ToolCall, move |event, ctx| {
        let targets = match event.tool_name() {
            "write" => event.input_as::<WriteInput>().map(|w| vec![w.path.clone()]),
            "edit" => event.input_as::<EditInput>().map(|e| vec![e.path.clone()]),
            "bash" => event.input_as::<BashInput>().map(|b| bash::written(&b.command)),
            _ => None,
        };
        let Some(targets) = targets else { return Ok(None) };
        let rules = match rules.get() {
            Some(rules) => rules,
            None => {
                let more = ctx.pi().get_flag(FLAG)?;
                rules
                    .get_or_init(|| Rules::new(more.as_ref().and_then(FlagValue::as_str).unwrap_or_default()))
            }
        };
        let cwd = ctx.cwd()?;
        for target in targets {
            if let Some(rule) = judged(rules, &cwd, &target) {
                return Ok(Some(block(format!(
                    "Blocked by protected-paths: {target} is protected ({rule}). \
                     Leave it as it is, or ask the user to change it."
                ))));
            }
        }
        Ok(None)
    });
    Ok(())
}

/// By the name it is given, and by the file that name leads to.
fn judged(rules: &Rules, cwd: &Path, target: &str) -> Option<String> {
    let path = cwd.join(target);
    let real = path.canonicalize().ok().or_else(|| {
        // A file that does not exist yet in a folder that does.
        Some(path.parent()?.canonicalize().ok()?.join(path.file_name()?))
    });
    let below = |p: &Path| p.strip_prefix(cwd).map(Path::to_owned).unwrap_or_else(|_| p.to_owned());
    // Folders above the session's own directory are not the model's choice.
    let real_cwd = cwd.canonicalize().unwrap_or_else(|_| cwd.to_owned());
    let real = real.map(|r| r.strip_prefix(&real_cwd).map(PathBuf::from).unwrap_or(r));
    rules.hit(&rules::plain(&below(&path))).or_else(|| rules.hit(&real?)).map(str::to_owned)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn a_link_to_a_protected_file_is_protected() {
        let dir = std::env::temp_dir().join(format!("protected-paths-{}", std::process::id()));
        std::fs::create_dir_all(&dir).unwrap();
        std::fs::write(dir.join(".env"), "A=1").unwrap();
        let _ = std::fs::remove_file(dir.join("innocent"));
        std::os::unix::fs::symlink(dir.join(".env"), dir.join("innocent")).unwrap();
        assert!(judged(&Rules::new(""), &dir, "innocent").is_some());
        assert!(judged(&Rules::new(""), &dir, "other").is_none());
        std::fs::remove_dir_all(&dir).unwrap();
    }

    #[test]
    fn a_session_inside_a_protected_folder_can_still_work() {
        let cwd = Path::new("/srv/node_modules/mine");
        assert!(judged(&Rules::new(""), cwd, "src/index.js").is_none());
        assert!(judged(&Rules::new(""), cwd, "node_modules/x.js").is_some());
        assert!(judged(&Rules::new(""), cwd, "a/../.git/config").is_some());
    }
}

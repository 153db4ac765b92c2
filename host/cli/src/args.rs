//! The command line, as clap sees it. Flags of extensions are no part of it: they are
//! set aside by `extension_flags` before clap looks, and settled once the extensions are loaded.

use crate::{
    card::Card,
    nearest::{distance, tolerance},
};
use clap::{ArgAction, Args as ClapArgs, CommandFactory, Parser, Subcommand, ValueEnum};
use std::{ffi::OsString, path::PathBuf};

const HELP: &str = "\
{about-with-newline}
{usage-heading} {usage}

{all-args}{after-help}";

#[derive(Parser, Debug)]
#[command(
    name = "atomic",
    version,
    about = "A terminal coding agent, extended by native libraries",
    help_template = HELP,
    override_usage = "atomic [OPTIONS] [MESSAGE]...  |  atomic <COMMAND>",
    disable_help_flag = true,
    disable_help_subcommand = true,
    subcommand_precedence_over_arg = true,
    term_width = 79
)]
pub struct Args {
    #[command(subcommand)]
    pub command: Option<Command>,

    #[command(flatten)]
    pub run: RunArgs,

    /// This screen
    #[arg(short, long, global = true, action = ArgAction::HelpShort)]
    help: Option<bool>,
    /// All options, also of extensions
    #[arg(long)]
    pub help_all: bool,
}

/// What a run of the agent takes.
#[derive(ClapArgs, Debug, Default, Clone)]
pub struct RunArgs {
    /// What to say first; each argument is one message, `@FILE` goes before the first
    #[arg(value_name = "MESSAGE", hide_short_help = true)]
    pub messages: Vec<String>,

    /// Answer on stdout and exit
    #[arg(short, long)]
    pub print: bool,

    /// `text` or `json` (one event a line)
    ///
    /// `lines` is the plain prompt also when stdin is not a terminal: each line is taken
    /// when the agent is idle or asks something.
    #[arg(long, value_enum, value_name = "MODE", hide_possible_values = true, hide_short_help = true)]
    pub mode: Option<ModeArg>,

    /// Lines instead of the full screen: for screen readers, and terminals that can do little
    #[arg(long, hide_short_help = true)]
    pub plain: bool,

    /// Load a library, a folder or a crate (repeatable)
    #[arg(short, long = "extension", value_name = "PATH")]
    pub extensions: Vec<PathBuf>,
    /// Folders of `-e` that bring more than libraries; a crate among them is its library by now.
    #[arg(skip)]
    pub lenders: Vec<PathBuf>,

    /// Rebuild this crate when it changes, and reload it
    #[arg(long, value_name = "PATH", hide = true)]
    pub watch_crate: Option<PathBuf>,

    /// Load only what -e names
    #[arg(long, hide_short_help = true)]
    pub no_extensions: bool,

    /// `provider/id`, or a part of it; `:thinking` behind it
    #[arg(long, value_name = "MODEL")]
    pub model: Option<String>,

    /// What a key switches between, like `sonnet:high,openai/*` (comma-separated)
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub models: Option<Vec<String>>,

    /// The models there are, or those that fit a text
    #[arg(long, value_name = "SEARCH", num_args = 0..=1, default_missing_value = "", hide_short_help = true)]
    pub list_models: Option<String>,

    /// Provider of --model
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    pub provider: Option<String>,

    /// off, minimal, low, medium, high, xhigh or max
    #[arg(long, value_name = "LEVEL", hide_short_help = true)]
    pub thinking: Option<String>,

    /// The built-in model: no network, no key
    ///
    /// Without a script it repeats what it hears, and `call bash {"command":"ls"}` in a
    /// message makes it call that tool.
    #[arg(long)]
    pub offline: bool,

    /// What the offline model answers: {"turns": [..]}
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub script: Option<PathBuf>,

    /// Write what providers are asked and answer to a new file, without keys
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with = "replay")]
    pub record: Option<PathBuf>,

    /// Answer from such a file, without network
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub replay: Option<PathBuf>,

    /// Go on with the newest session of this folder
    #[arg(short = 'c', long = "continue")]
    pub continue_session: bool,

    /// Choose a session to go on with
    #[arg(short = 'r', long = "resume", hide_short_help = true, conflicts_with_all = ["continue_session", "session", "fork"])]
    pub resume: bool,

    /// Go on with this session: a file, or the beginning of its id
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    pub session: Option<PathBuf>,

    /// A session of this folder that begins as another one: a file, or the beginning of its id
    #[arg(long, value_name = "FILE", hide_short_help = true, conflicts_with_all = ["continue_session", "session"])]
    pub fork: Option<PathBuf>,

    /// The id of the session; one that is there already is gone on with
    #[arg(long, value_name = "ID", hide_short_help = true, conflicts_with_all = ["continue_session", "session"])]
    pub session_id: Option<String>,

    /// What the session is called
    #[arg(short, long, value_name = "TEXT", hide_short_help = true)]
    pub name: Option<String>,

    /// Where sessions are kept
    #[arg(long, value_name = "DIR", hide_short_help = true)]
    pub session_dir: Option<PathBuf>,

    /// Write no session file
    #[arg(long, hide_short_help = true)]
    pub no_session: bool,

    /// Trust what this folder brings, this time
    #[arg(short, long, conflicts_with = "no_approve", hide_short_help = true)]
    pub approve: bool,

    /// Do not trust this folder, this time
    #[arg(long, hide_short_help = true)]
    pub no_approve: bool,

    /// Only these tools (comma-separated)
    #[arg(short, long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub tools: Option<Vec<String>>,

    /// Run the engine of a supervisor (what `atomic` starts by itself)
    #[arg(long, hide = true)]
    pub engine: bool,

    /// Not these tools (comma-separated; -xt)
    #[arg(long, value_name = "LIST", value_delimiter = ',', hide_short_help = true)]
    pub exclude_tools: Vec<String>,

    /// Only what extensions bring (-nbt)
    #[arg(long, hide_short_help = true)]
    pub no_builtin_tools: bool,

    /// No tools but those of --tools (-nt)
    #[arg(long, hide_short_help = true)]
    pub no_tools: bool,

    /// Replaces the system prompt: a text, or a file
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub system_prompt: Option<String>,

    /// Added to the system prompt: a text, or a file (repeatable)
    #[arg(long, value_name = "TEXT", hide_short_help = true)]
    pub append_system_prompt: Vec<String>,

    #[command(flatten)]
    pub lend: LendArgs,

    /// Accepted for compatibility: there are no MCP servers to leave out
    #[arg(long, hide = true)]
    pub no_mcp: bool,

    /// What was piped in.
    #[arg(skip)]
    pub stdin: Option<String>,
}

/// What goes into the prompt beside the command line.
#[derive(ClapArgs, Debug, Default, Clone)]
pub struct LendArgs {
    /// A skill: a file or a folder (repeatable)
    #[arg(long = "skill", value_name = "PATH", hide_short_help = true)]
    pub skills: Vec<PathBuf>,

    /// No skills but those of --skill (-ns)
    #[arg(long, hide_short_help = true)]
    pub no_skills: bool,

    /// A prompt template: a file or a folder (repeatable)
    #[arg(long = "prompt-template", value_name = "PATH", hide_short_help = true)]
    pub prompt_templates: Vec<PathBuf>,

    /// No templates but those of --prompt-template (-np)
    #[arg(long, hide_short_help = true)]
    pub no_prompt_templates: bool,

    /// A theme: a file or a folder (repeatable)
    #[arg(long = "theme", value_name = "PATH", hide_short_help = true)]
    pub themes: Vec<PathBuf>,

    /// No themes but those of --theme
    #[arg(long, hide_short_help = true)]
    pub no_themes: bool,

    /// No AGENTS.md and its like (-nc)
    #[arg(long, hide_short_help = true)]
    pub no_context_files: bool,
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ModeArg {
    Text,
    Json,
    Lines,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// List, install, make and run extensions
    #[command(subcommand)]
    Extension(ExtensionCommand),
    /// Whether a folder's extensions and files may be used
    Trust(TrustArgs),
    /// Keys of model providers
    Auth(AuthArgs),
    /// List, search, check, delete and export sessions
    #[command(subcommand, alias = "session")]
    Sessions(SessionsCommand),
    /// How everything stands; runs nothing
    Doctor,
    /// See an extension loaded, at work and reloaded
    Demo,
    /// What an error code means, at length
    Explain {
        /// Default: list the codes
        #[arg(value_name = "CODE")]
        code: Option<String>,
    },
    /// Print a shell's completion script
    Completions {
        #[arg(value_enum)]
        shell: clap_complete::Shell,
    },
    /// What a command takes
    #[command(hide = true)]
    Help(HelpOf),
}

/// `help`, for those who do not type `--help`. Clap's own would take a line of the screen.
#[derive(ClapArgs, Debug)]
pub struct HelpOf {
    #[arg(value_name = "COMMAND")]
    pub command: Vec<String>,
}

/// A command line of one word that is nearly a command's name: taken as a message it would go to
/// a model, which may cost something, where `demo` was meant.
pub fn mistyped_command(root: &clap::Command, given: &[OsString]) -> Option<Card> {
    let [word] = given else { return None };
    let word = word.to_str().filter(|w| !w.starts_with('-') && !w.contains(char::is_whitespace))?;
    if root.find_subcommand(word).is_some() {
        return None;
    }
    let names = root.get_subcommands().map(|c| (distance(word, c.get_name()), c.get_name()));
    let (d, near) = names.min()?;
    (d <= tolerance(word).min(2)).then(|| {
        Card::new("cli::unknown_command", format!("there is no command '{word}'"))
            .help(format!("did you mean `atomic {near}`? To say the word to the model: atomic -- {word}"))
    })
}

/// The screen of the command that these words lead to.
pub fn help_of<'a>(words: impl IntoIterator<Item = &'a str>) -> Result<String, Card> {
    let mut root = Args::command();
    root.build();
    let mut command = &root;
    for word in words {
        command = command.find_subcommand(word).ok_or_else(|| {
            Card::new("cli::unknown_command", format!("there is no command '{word}'"))
                .help(format!("{} --help lists them", command.get_bin_name().unwrap_or("atomic")))
        })?;
    }
    Ok(command.clone().render_help().to_string())
}

#[derive(ClapArgs, Debug)]
pub struct AuthArgs {
    #[command(subcommand)]
    pub command: Option<AuthCommand>,
}

/// API keys only: logging in with a subscription (OAuth) comes in a later version.
/// A session is a file, or the beginning of an id.
#[derive(Subcommand, Debug)]
pub enum SessionsCommand {
    /// Sessions of this folder, the last used first
    List {
        /// Of every folder
        #[arg(long)]
        all: bool,
        /// One JSON object a line
        #[arg(long)]
        json: bool,
        /// All of them in the name, the first message, the id or the folder
        #[arg(value_name = "WORDS")]
        words: Vec<String>,
    },
    /// Where something was said
    Search {
        /// In every folder
        #[arg(long)]
        all: bool,
        #[arg(value_name = "WORDS", required = true)]
        words: Vec<String>,
    },
    /// What is wrong with a session file; changes nothing
    Check {
        #[arg(value_name = "FILE")]
        file: PathBuf,
        #[arg(long)]
        json: bool,
    },
    /// Move a session to the trash of Atomic's home
    Delete {
        #[arg(value_name = "SESSION")]
        session: PathBuf,
    },
    /// A page to read: HTML without scripts or links, or Markdown
    Export {
        #[arg(value_name = "SESSION")]
        session: PathBuf,
        /// Default: what the output is called, else html
        #[arg(long, value_enum, value_name = "FORMAT")]
        format: Option<ExportFormat>,
        /// Default: stdout; a file that is there stays
        #[arg(short, long, value_name = "FILE")]
        output: Option<PathBuf>,
    },
    /// What a command takes
    #[command(hide = true)]
    Help(HelpOf),
}

#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub enum ExportFormat {
    Html,
    Markdown,
}

#[derive(Subcommand, Debug, Default)]
pub enum AuthCommand {
    /// Store a key: typed without being shown, or over a pipe (OAuth comes later)
    Login {
        #[arg(value_name = "PROVIDER")]
        provider: Option<String>,
    },
    /// Remove a stored key
    Logout {
        #[arg(value_name = "PROVIDER")]
        provider: String,
    },
    /// Whether a provider has a key, and from where; asks no provider
    Check {
        #[arg(value_name = "PROVIDER")]
        provider: Option<String>,
    },
    /// Every provider and how it stands
    #[default]
    List,
    /// What a command takes
    #[command(hide = true)]
    Help(HelpOf),
}

#[derive(ClapArgs, Debug)]
pub struct TrustArgs {
    #[command(subcommand)]
    pub command: Option<TrustCommand>,
}

/// Without a path: the current folder.
#[derive(Subcommand, Debug)]
pub enum TrustCommand {
    /// What was said, what it brings, how its libraries stand to their pins
    Status {
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
    },
    /// Trust it, with its libraries as they are now
    Allow {
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
    },
    /// Do not trust it
    Deny {
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
    },
    /// As if nothing had been said
    Forget {
        #[arg(value_name = "PATH")]
        path: Option<PathBuf>,
    },
}

impl Default for TrustCommand {
    fn default() -> Self {
        Self::Status { path: None }
    }
}

#[derive(Subcommand, Debug)]
pub enum ExtensionCommand {
    /// What is installed, and what is refused; runs nothing of it
    List,
    /// What a library says of itself; runs nothing of it
    Inspect {
        #[arg(value_name = "FILE")]
        file: PathBuf,
    },
    /// Install a library, or build a crate and install what comes out
    Install {
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Build without the network
        #[arg(long)]
        offline: bool,
    },
    /// Move an installed extension to the trash of Atomic's home
    Remove {
        #[arg(value_name = "NAME")]
        name: String,
    },
    /// Write a crate to start from
    New {
        #[arg(value_name = "NAME")]
        name: String,
        /// Where to write it; default: a folder of that name here
        #[arg(long, value_name = "DIR")]
        path: Option<PathBuf>,
    },
    /// A session with a crate that is rebuilt and reloaded when it changes
    Dev {
        #[arg(value_name = "PATH")]
        path: PathBuf,
        /// Options and messages of the session
        #[arg(value_name = "ARGS", trailing_var_arg = true, allow_hyphen_values = true)]
        args: Vec<OsString>,
    },
    /// Run an extension that is a program
    Run {
        /// Its name, or a path
        #[arg(value_name = "ID")]
        id: String,
        #[arg(last = true, value_name = "ARGS")]
        args: Vec<String>,
    },
    /// Lay out the first-party extensions in `extensions/` beside the executable
    Bundle {
        /// Where built libraries are taken from; default: build them from the source tree
        #[arg(value_name = "FROM-DIR")]
        dir: Option<PathBuf>,
    },
    /// What a command takes
    #[command(hide = true)]
    Help(HelpOf),
}

/// Short forms of several letters, which clap has not.
const SHORT_PAIRS: [(&str, &str); 8] = [
    ("-ne", "--no-extensions"),
    ("-na", "--no-approve"),
    ("-ns", "--no-skills"),
    ("-np", "--no-prompt-templates"),
    ("-nc", "--no-context-files"),
    ("-nt", "--no-tools"),
    ("-nbt", "--no-builtin-tools"),
    ("-xt", "--exclude-tools"),
];

/// Spells the two-letter short forms out.
pub fn spell_out(args: impl IntoIterator<Item = OsString>) -> Vec<OsString> {
    let mut literal = false;
    args.into_iter()
        .map(|arg| {
            literal |= arg == "--";
            let long = SHORT_PAIRS.iter().find(|(short, _)| !literal && arg == *short);
            long.map_or(arg, |(_, long)| OsString::from(long))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Args::command().debug_assert();
    }

    #[test]
    fn help_fits_one_screen_of_24_lines_and_80_columns() {
        let help = Args::command().render_help().to_string();
        assert!(help.lines().count() <= 23, "{} lines:\n{help}", help.lines().count());
        assert!(help.lines().all(|l| l.chars().count() <= 79), "{help}");
    }

    #[test]
    fn help_all_names_what_the_short_screen_leaves_out() {
        let help = Args::command().render_long_help().to_string();
        for flag in ["--provider", "--script", "--session-dir", "--append-system-prompt", "lines"] {
            assert!(help.contains(flag), "{flag} is missing:\n{help}");
        }
    }

    #[test]
    fn a_word_that_is_nearly_a_command_is_refused_and_a_message_is_not() {
        let mistyped = |line: &str| {
            let given: Vec<_> = line.split(' ').map(OsString::from).collect();
            mistyped_command(&Args::command(), &given)
        };
        for (word, meant) in
            [("demmo", "demo"), ("extnsion", "extension"), ("explian", "explain"), ("hepl", "help")]
        {
            let card = mistyped(word).expect(word);
            assert_eq!(card.code, "cli::unknown_command");
            assert!(card.to_string().contains(&format!("did you mean `atomic {meant}`?")), "{card}");
        }
        for line in ["demo", "hello", "hi", "test", "fix", "-p demmo", "-- demmo", "demmo please", "explore"]
        {
            assert!(mistyped(line).is_none(), "{line}");
        }
    }

    #[test]
    fn two_letter_short_forms_are_spelled_out_before_the_double_dash_only() {
        let given = ["atomic", "-ne", "-na", "--", "-ne"].map(OsString::from);
        let got = spell_out(given);
        assert_eq!(got, ["atomic", "--no-extensions", "--no-approve", "--", "-ne"].map(OsString::from));
    }
}

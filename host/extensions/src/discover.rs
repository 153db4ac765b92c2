#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    Cli,
    User,
    Global,
    Bundled,
    Project,
}

//! How the answers of several handlers become one: the classes of events (events.md A.1).

/// The merge rule of an event. Each is one small file of the host's `dispatch` room.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Class {
    /// Informs.
    Notify,
    /// Informs all at once, beside what it is about.
    Concurrent,
    /// Everybody adds something.
    Collect,
    /// Each handler sees what the one before made of it.
    Chain,
    /// The last answer counts, and the first that cancels ends it.
    Veto,
    /// The first answer counts.
    FirstWins,
    /// Proposes entries, and whether the run goes on.
    Boundary,
    /// Lets pass, or blocks.
    Gate,
    /// The first yes or no counts.
    Decision,
}

impl Class {
    /// All of them, in the order of the page.
    pub const ALL: [Class; 9] = [
        Class::Notify,
        Class::Concurrent,
        Class::Collect,
        Class::Chain,
        Class::Veto,
        Class::FirstWins,
        Class::Boundary,
        Class::Gate,
        Class::Decision,
    ];

    /// As the page writes it.
    pub const fn name(self) -> &'static str {
        match self {
            Class::Notify => "notify",
            Class::Concurrent => "notify, concurrent",
            Class::Collect => "collect",
            Class::Chain => "chain",
            Class::Veto => "veto",
            Class::FirstWins => "first wins",
            Class::Boundary => "boundary",
            Class::Gate => "gate",
            Class::Decision => "decision",
        }
    }

    /// What becomes of the answers.
    pub const fn merge(self) -> &'static str {
        match self {
            Class::Notify => "Handlers run one after another; nothing they return counts.",
            Class::Concurrent => {
                "All handlers are started at once, none waits for another, and what the event is about waits for none of them. Nothing they return counts."
            }
            Class::Collect => "What the handlers return is put together in their order.",
            Class::Chain => "Each handler sees the value as the one before left it; the last value counts.",
            Class::Veto => {
                "The last answer counts as a whole, nothing of earlier ones is merged into it; the first with `cancel: true` ends the question."
            }
            Class::FirstWins => "The first answer counts, and later handlers are not asked.",
            Class::Boundary => {
                "Each handler sees the entries proposed so far, and what the model would be shown with them; a field it returns replaces that field as a whole. After the last handler all entries are written in order, or none if one of them cannot be. `continue: true` begins another turn if the model has something to answer, the run was neither aborted nor failed, and extensions did so fewer than `agent.maxHookContinuations` (25) times for this prompt; `false` ends nothing that goes on by itself."
            }
            Class::Gate => {
                "The first `block: true` ends the chain; without one the call runs with the arguments as the last handler left them."
            }
            Class::Decision => "The first yes or no ends it.",
        }
    }

    /// What a handler that fails, panics, answers what cannot be read or overruns does to it.
    pub const fn errors(self) -> &'static str {
        match self {
            Class::Notify | Class::Concurrent => "One diagnostic; the next handler runs.",
            Class::Collect => "One diagnostic; it has added nothing; the next handler runs.",
            Class::Chain => "One diagnostic; the value stays as it was; the next handler runs.",
            Class::Veto => "One diagnostic; it has neither cancelled nor taken an earlier answer back.",
            Class::FirstWins => {
                "One diagnostic, and what was asked for does not happen: no handler after it is asked."
            }
            Class::Boundary => {
                "One diagnostic; the proposal stays as it was. Entries that cannot be written are a diagnostic too, and a later handler may mend them."
            }
            Class::Gate => "One diagnostic, and the call is blocked.",
            Class::Decision => "One diagnostic; it has decided nothing; the next handler is asked.",
        }
    }
}

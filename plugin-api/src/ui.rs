//! `ctx.ui()`: dialogs and notices (events.md E.7). Without somebody to answer (print,
//! json) a dialog answers its default at once.

use crate::{
    abi::instance::Call,
    error::Result,
    protocol::ui::{Level, Notify, SetStatus, SetTitle},
};

/// What the user sees and answers.
#[derive(Clone)]
pub struct Ui {
    pub(crate) call: Call,
    #[cfg(feature = "tokio")]
    timeout_ms: Option<u64>,
}

impl Ui {
    pub(crate) fn new(call: Call) -> Self {
        Ui {
            call,
            #[cfg(feature = "tokio")]
            timeout_ms: None,
        }
    }
    /// Shows a line.
    ///
    /// # Errors
    /// `stale_context`, here and below.
    pub fn notify(&self, message: impl AsRef<str>, level: Level) -> Result<()> {
        self.call.tell("ui.notify", &Notify { message: message.as_ref(), level })
    }
    /// Shows a text in the status line; keys are shared by all extensions.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn set_status(&self, key: &str, text: impl AsRef<str>) -> Result<()> {
        self.call.tell("ui.setStatus", &SetStatus { key, text: Some(text.as_ref()) })
    }
    /// Takes it away again.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn clear_status(&self, key: &str) -> Result<()> {
        self.call.tell("ui.setStatus", &SetStatus { key, text: None })
    }
    /// Sets the title of the terminal window.
    ///
    /// # Errors
    /// `stale_context`.
    pub fn set_title(&self, title: impl AsRef<str>) -> Result<()> {
        self.call.tell("ui.setTitle", &SetTitle { title: title.as_ref() })
    }
}

#[cfg(feature = "tokio")]
mod dialogs {
    use super::Ui;
    use crate::{call::Request, protocol::ui::Dialog};
    use std::time::Duration;

    impl Ui {
        /// The dialogs of the answered handle close after this long, with their default.
        #[must_use]
        pub fn timeout(&self, timeout: Duration) -> Ui {
            Ui { timeout_ms: Some(u64::try_from(timeout.as_millis()).unwrap_or(u64::MAX)), ..self.clone() }
        }
        /// Yes or no. Only an explicit yes is true: escape, timeout, a reload and a missing
        /// user are all false.
        pub fn confirm(&self, title: impl AsRef<str>, message: impl AsRef<str>) -> Request<bool> {
            self.call.ask(
                "ui.confirm",
                &Dialog {
                    title: title.as_ref(),
                    message: Some(message.as_ref()),
                    timeout_ms: self.timeout_ms,
                    ..Dialog::default()
                },
            )
        }
        /// One of these, or `None`.
        pub fn select<I: IntoIterator<Item = S>, S: Into<String>>(
            &self,
            title: impl AsRef<str>,
            options: I,
        ) -> Request<Option<String>> {
            self.call.ask(
                "ui.select",
                &Dialog {
                    title: title.as_ref(),
                    options: Some(options.into_iter().map(Into::into).collect()),
                    timeout_ms: self.timeout_ms,
                    ..Dialog::default()
                },
            )
        }
        /// A line of text, or `None`.
        pub fn input(&self, title: impl AsRef<str>, placeholder: Option<&str>) -> Request<Option<String>> {
            self.call.ask(
                "ui.input",
                &Dialog {
                    title: title.as_ref(),
                    placeholder,
                    timeout_ms: self.timeout_ms,
                    ..Dialog::default()
                },
            )
        }
        /// A longer text, or `None`. There is no timeout.
        pub fn editor(&self, title: impl AsRef<str>, prefill: Option<&str>) -> Request<Option<String>> {
            self.call.ask("ui.editor", &Dialog { title: title.as_ref(), prefill, ..Dialog::default() })
        }
    }
}

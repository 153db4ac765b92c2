//! Whose fault an engine's end was, in a sentence for a person. The page it wrote says who ran
//! where; the exit status says how it ended.

use super::pages::Crash;
use atomic_extensions::breadcrumb::{Blame, By, Held, Page, blame};
use std::process::ExitStatus;

/// How an engine ended.
#[derive(Debug)]
pub enum End {
    /// By itself; `None` when even that is unknown.
    Died(Option<ExitStatus>),
    /// It was ended because it did not answer.
    Hung(Option<Held>),
}

#[derive(Debug, PartialEq, Eq)]
pub struct Loss {
    pub what: String,
    /// Surest first; empty when nobody can be named.
    pub extensions: Vec<String>,
    pub event: Option<String>,
}

/// What the kernel calls the fault that a page recorded, if its process died of one and an
/// extension can be named.
pub fn fatal(page: &Page) -> Option<Crash> {
    let Blame { by, fault, suspects } = blame(page);
    let fault = fault?;
    if by == By::Suspects && suspects.len() != 1 {
        return None;
    }
    let one = suspects.into_iter().next()?;
    Some(Crash { extension: one.extension?, event: one.event, signal: signal_name(fault.signal) })
}

pub fn of(end: &End, page: Option<&Page>) -> Loss {
    let (how, fault) = match end {
        End::Hung(Some(Held { extension: Some(extension), event, time, .. })) => {
            let at = event.as_ref().map(|e| format!(" in {e}")).unwrap_or_default();
            return Loss {
                what: format!("{extension} held the engine for {:.1} s{at}", time.as_secs_f32()),
                extensions: vec![extension.clone()],
                event: event.clone(),
            };
        }
        End::Hung(_) => ("it did not answer and was ended".to_owned(), None),
        End::Died(status) => (died(*status), page.map(blame).and_then(|b| b.fault)),
    };
    let blamed = page.map(blame);
    let by = blamed.as_ref().map(|b| b.by);
    let named: Vec<(String, Option<String>)> =
        blamed.into_iter().flat_map(|b| b.suspects).filter_map(|s| Some((s.extension?, s.event))).collect();
    // Idle threads of extensions are no suspects while somebody really ran.
    let busy: Vec<_> = named.iter().filter(|(_, e)| e.as_deref() != Some(THREAD)).cloned().collect();
    let sure = matches!(by, Some(By::Crumb | By::Library));
    let named = if sure { named } else { busy };
    let how = fault.map_or(how, |f| signal_name(f.signal));
    match named.as_slice() {
        [] => Loss { what: format!("the engine ended: {how}"), extensions: Vec::new(), event: None },
        [(extension, event)] => {
            let at = event.as_ref().map(|e| format!(" in {e}")).unwrap_or_default();
            Loss {
                what: match sure {
                    true => format!("{extension} crashed the engine ({how}{at})"),
                    false => format!("the engine ended ({how}) while {extension} ran{at}"),
                },
                extensions: vec![extension.clone()],
                event: event.clone(),
            }
        }
        several => {
            let mut names: Vec<String> = several.iter().map(|(n, _)| n.clone()).collect();
            names.dedup();
            Loss {
                what: format!("the engine ended ({how}) while these extensions ran: {}", names.join(", ")),
                extensions: names,
                event: None,
            }
        }
    }
}

/// The page's word for a thread of an extension that does nothing.
const THREAD: &str = "a thread of its own";

#[cfg(unix)]
fn died(status: Option<ExitStatus>) -> String {
    use std::os::unix::process::ExitStatusExt;
    match status {
        None => "nobody knows how".into(),
        Some(s) => match s.signal() {
            Some(signal) => signal_name(signal),
            None => format!("exit code {}", s.code().unwrap_or_default()),
        },
    }
}

#[cfg(windows)]
fn died(status: Option<ExitStatus>) -> String {
    match status.and_then(|s| s.code()) {
        Some(code) => format!("exit code {code:#x}"),
        None => "nobody knows how".into(),
    }
}

#[cfg(unix)]
pub fn signal_name(signal: i32) -> String {
    match rustix::process::Signal::from_named_raw(signal) {
        Some(signal) => match format!("{signal:?}").trim_matches('"').rsplit("::").next() {
            Some("ABORT") => "SIGABRT".into(),
            name => format!("SIG{}", name.unwrap_or_default()),
        },
        None => format!("signal {signal}"),
    }
}

#[cfg(windows)]
pub fn signal_name(signal: i32) -> String {
    format!("fault {signal:#x}")
}

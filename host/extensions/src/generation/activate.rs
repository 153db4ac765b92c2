//! Activation with a deadline, on a thread that may be lost.

use super::{Body, Generation, Step, helper};
use crate::graveyard::{Grave, Graveyard, Left};
use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::Duration,
};

/// Why there is no instance. The generation is over: fenced, and nothing it staged is left.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ActivationError {
    /// `activate` returned an error or panicked.
    #[error("{extension} could not be activated: {message}")]
    Failed { extension: String, message: String },
    /// `activate` had not returned at the deadline; its thread was given up.
    #[error(
        "{extension} was still activating after {} s and was given up; `activate` should only register, \
         long work belongs to session_start",
        deadline.as_secs()
    )]
    TimedOut { extension: String, deadline: Duration },
    /// The generation was fenced while it activated (the host is closing).
    #[error("{extension} was ended while it activated")]
    Fenced { extension: String },
}

impl ActivationError {
    pub fn code(&self) -> &'static str {
        match self {
            Self::Failed { .. } => "extension::init_failed",
            Self::TimedOut { .. } => "extension::init_timeout",
            Self::Fenced { .. } => "extension::init_ended",
        }
    }
}

/// Runs `activate` and gives its instance to the generation, which stays staged.
///
/// At the deadline the generation is fenced and its thread counted as lost; an
/// instance that arrives later is shut down and dropped by that thread itself.
pub async fn activate_on_thread(
    generation: &Arc<Generation>,
    deadline: Duration,
    activate: impl FnOnce() -> Result<Arc<dyn Body>, String> + Send + 'static,
) -> Result<Arc<dyn Body>, ActivationError> {
    let decided = Arc::new(AtomicBool::new(false));
    let mut result = helper::run({
        let (generation, decided) = (generation.clone(), decided.clone());
        move || {
            let outcome =
                catch_unwind(AssertUnwindSafe(activate)).unwrap_or_else(|panic| Err(panic_text(&*panic)));
            let late = decided.swap(true, SeqCst);
            match outcome {
                Ok(body) if !late && generation.adopt(&body) => Some(Ok(body)),
                Ok(body) => {
                    end_unwanted(&generation, &*body, deadline);
                    came_back(&generation, late);
                    None
                }
                Err(message) => {
                    came_back(&generation, late);
                    Some(Err(message))
                }
            }
        }
    });
    let extension = generation.name().to_owned();
    let answer = tokio::select! {
        biased;
        answer = &mut result => answer,
        () = tokio::time::sleep(deadline) => {
            // Counted first: the thread takes its grave away when it comes back after we decided.
            let why = format!("activation did not end within {} s", deadline.as_secs());
            bury_instance(&generation.graveyard, generation, Left::HostThread, why);
            if !decided.swap(true, SeqCst) {
                over(generation);
                return Err(ActivationError::TimedOut { extension, deadline });
            }
            generation.graveyard.thread_came_back(generation.number());
            result.await
        }
    };
    let error = match answer {
        Ok(Some(Ok(body))) => return Ok(body),
        Ok(Some(Err(message))) => ActivationError::Failed { extension, message },
        Ok(None) => ActivationError::Fenced { extension },
        Err(_) => {
            ActivationError::Failed { extension, message: "no thread could be started for it".to_owned() }
        }
    };
    over(generation);
    Err(error)
}

/// The end of a generation without an instance: nobody was ever inside.
fn over(generation: &Generation) {
    generation.discard();
    generation.note(Step::Graveyard);
    generation.retired();
}

fn end_unwanted(generation: &Generation, body: &dyn Body, deadline: Duration) {
    let report = body.shutdown(deadline);
    if report.clean {
        body.drop_instance();
    } else {
        let left = Left::Instance { threads: report.threads_left, tasks: report.tasks_left };
        bury_instance(&generation.graveyard, generation, left, "it arrived too late and did not shut down");
    }
}

fn came_back(generation: &Generation, late: bool) {
    if late {
        generation.graveyard.thread_came_back(generation.number());
    }
}

pub(super) fn bury_instance(
    graveyard: &Graveyard,
    generation: &Generation,
    left: Left,
    why: impl Into<String>,
) {
    graveyard.bury(Grave {
        extension: generation.name().to_owned(),
        generation: generation.number(),
        hash: String::new(),
        left,
        why: why.into(),
    });
}

pub(super) fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text =
        panic.downcast_ref::<&str>().copied().or_else(|| panic.downcast_ref::<String>().map(String::as_str));
    format!("it panicked: {}", text.unwrap_or("(no message)"))
}

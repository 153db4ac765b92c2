//! No unwind crosses (SAFETY.md 2): every entry, poll and drop of author code runs in
//! `contained`. The panic hook keeps message and place, and prints nothing: a backtrace
//! printed inside a library maps its debug info for good (native-abi.md 5).

use std::{
    cell::{Cell, RefCell},
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Once},
};

/// Takes the text of a panic that no `contained` will see, as in a task the author spawned.
pub(super) type Report = Arc<dyn Fn(&str) + Send + Sync>;

thread_local! {
    static DEPTH: Cell<u32> = const { Cell::new(0) };
    static LAST: Cell<Option<String>> = const { Cell::new(None) };
    static REPORT: RefCell<Option<Report>> = const { RefCell::new(None) };
}

/// The panics of this thread belong to an instance: told to it, not printed.
pub(super) fn own_thread(report: Option<Report>) {
    // A thread that is ending may have no locals any more; it has no tasks either.
    let _ = REPORT.try_with(|r| *r.borrow_mut() = report);
}

/// Chains to the previous hook wherever no frame of ours is on the stack, so that an
/// author's own unit tests print as ever.
pub(super) fn install_hook() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let previous = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |info| {
            let message = info.payload_as_str().unwrap_or("panic");
            let text = match info.location() {
                Some(l) => format!("{message} ({}:{})", l.file(), l.line()),
                None => message.to_owned(),
            };
            if DEPTH.get() > 0 {
                let _ = LAST.try_with(|l| l.set(Some(text)));
                return;
            }
            match REPORT.try_with(|r| r.try_borrow().ok().and_then(|r| r.clone())).ok().flatten() {
                Some(report) => report(&text),
                None => previous(info),
            }
        }));
    });
}

/// Runs author code. A panic becomes its text; a payload whose own drop panics is leaked.
#[inline]
pub(super) fn contained<R>(f: impl FnOnce() -> R) -> Result<R, String> {
    // Looked up once: in a library that costs a call.
    DEPTH.with(|depth| {
        depth.set(depth.get() + 1);
        let result = catch_unwind(AssertUnwindSafe(f));
        depth.set(depth.get() - 1);
        result.map_err(text_of)
    })
}

#[cold]
fn text_of(payload: Box<dyn std::any::Any + Send>) -> String {
    let text = LAST.try_with(Cell::take).ok().flatten().unwrap_or_else(|| "panic".to_owned());
    if let Err(again) = catch_unwind(AssertUnwindSafe(|| drop(payload))) {
        std::mem::forget(again);
    }
    text
}

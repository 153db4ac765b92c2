//! The fatal-signal handler. Async-signal-safe: it loads and stores atomics,
//! formats on its own stack and calls `write`, `_exit`, `signal`, `raise`, `pause`.

#![allow(unsafe_code)]

use super::{
    blame::{Fault, culprit, running},
    page::Page,
};
use memmap2::MmapMut;
use std::{
    ffi::c_void,
    io,
    os::raw::c_int,
    sync::atomic::{
        AtomicU32,
        Ordering::{AcqRel, Acquire, Relaxed, Release},
    },
};

/// What happens after the fault is written down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnFatal {
    /// The signal takes its course: whoever watches this process sees it.
    Die,
    /// One line on stderr that names the extension, then exit code 70 (print and json mode).
    PrintAndExit,
}

/// Exit code of a crash in print and json mode.
pub(super) const EXIT: c_int = 70;
const SIGNALS: [(c_int, &str); 5] = [
    (libc::SIGSEGV, "SIGSEGV"),
    (libc::SIGBUS, "SIGBUS"),
    (libc::SIGILL, "SIGILL"),
    (libc::SIGFPE, "SIGFPE"),
    (libc::SIGABRT, "SIGABRT"),
];
static PRINT: AtomicU32 = AtomicU32::new(0);

/// Catches the fatal signals of the whole process from here on. Gives the
/// current thread a signal stack if it has none.
pub fn catch_fatal_signals(then: OnFatal) -> io::Result<()> {
    PRINT.store(u32::from(then == OnFatal::PrintAndExit), Release);
    if let Some(stack) = Stack::install() {
        // The thread that installs (main) lives as long as the process.
        std::mem::forget(stack);
    }
    for (signal, _) in SIGNALS {
        // SAFETY: (SAFETY.md 11) a zeroed sigaction is valid, the handler has the signature that
        // SA_SIGINFO asks for and keeps to async-signal-safe calls.
        let done = unsafe {
            let mut action: libc::sigaction = std::mem::zeroed();
            action.sa_sigaction = on_fatal as *const () as usize;
            action.sa_flags = libc::SA_SIGINFO | libc::SA_ONSTACK;
            libc::sigfillset(&raw mut action.sa_mask);
            libc::sigaction(signal, &raw const action, std::ptr::null_mut())
        };
        if done != 0 {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

extern "C" fn on_fatal(signal: c_int, info: *mut libc::siginfo_t, context: *mut c_void) {
    let page = super::page();
    let fault = Fault {
        signal,
        tid: thread_id(),
        // SAFETY: (SAFETY.md 11) the kernel gives a valid siginfo with SA_SIGINFO.
        address: unsafe { (*info).si_addr() as u64 },
        ip: instruction_pointer(context),
    };
    // Claimed under another field than the one readers look at: they must see all or nothing.
    if page.fault_tid.compare_exchange(0, fault.tid, AcqRel, Acquire).is_err() {
        // Another thread was first; it will end the process.
        loop {
            // SAFETY: (SAFETY.md 11) `pause` is async-signal-safe.
            unsafe { libc::pause() };
        }
    }
    page.fault_address.store(fault.address, Relaxed);
    page.fault_ip.store(fault.ip, Relaxed);
    page.signal.store(signal as u64, Release);
    if PRINT.load(Acquire) == 1 {
        say(page, fault);
        // SAFETY: (SAFETY.md 11) `_exit` is async-signal-safe.
        unsafe { libc::_exit(EXIT) };
    }
    // SAFETY: (SAFETY.md 11) both are async-signal-safe; the signal is blocked until we return.
    unsafe {
        libc::signal(signal, libc::SIG_DFL);
        libc::raise(signal);
    }
}

/// One line, one write.
fn say(page: &Page, fault: Fault) {
    let mut line = Line::new();
    let signal =
        SIGNALS.iter().find(|(number, _)| *number == fault.signal).map_or("a fatal signal", |(_, n)| n);
    line.put(b"atomic: ");
    match culprit(page, fault) {
        Some(found) => {
            line.put(b"extension ");
            line.name(page, found.owner);
            line.put(b" crashed the program (");
            line.put(signal.as_bytes());
            if let Some(event) = page.kind_name(found.kind) {
                line.put(b" in ");
                line.put(event.as_bytes());
            }
            line.put(b")");
        }
        None => {
            line.put(b"the program crashed (");
            line.put(signal.as_bytes());
            line.put(b")");
            let mut lead: &[u8] = b", while these extensions ran: ";
            for frame in running(page).take(4) {
                line.put(lead);
                line.name(page, frame.owner());
                lead = b", ";
            }
        }
    }
    line.put(b"; the session can be opened again with --continue\n");
    line.write();
}

/// Text for stderr, made without allocating.
pub(super) struct Line {
    bytes: [u8; 640],
    len: usize,
}

impl Line {
    pub(super) fn new() -> Self {
        Line { bytes: [0; 640], len: 0 }
    }

    pub(super) fn write(&self) {
        // SAFETY: (SAFETY.md 11) `write` is async-signal-safe; the buffer is on this stack.
        let _ = unsafe { libc::write(2, self.bytes.as_ptr().cast::<c_void>(), self.len) };
    }

    pub(super) fn put(&mut self, text: &[u8]) {
        for (to, from) in self.bytes[self.len..].iter_mut().zip(text) {
            *to = *from;
            self.len += 1;
        }
    }

    pub(super) fn name(&mut self, page: &Page, owner: u64) {
        match page.extensions.get(owner) {
            Some(name) => self.put(name.as_bytes()),
            None => self.put(b"(unknown)"),
        }
    }
}

#[allow(unused_variables)]
fn instruction_pointer(context: *mut c_void) -> u64 {
    if context.is_null() {
        return 0;
    }
    let context = context.cast::<libc::ucontext_t>();
    #[cfg(all(target_os = "linux", target_arch = "x86_64"))]
    // SAFETY: (SAFETY.md 11) the kernel gives a valid ucontext with SA_SIGINFO.
    return unsafe { (*context).uc_mcontext.gregs[libc::REG_RIP as usize] as u64 };
    #[cfg(all(target_os = "linux", target_arch = "aarch64"))]
    // SAFETY: (SAFETY.md 11) as above.
    return unsafe { (*context).uc_mcontext.pc };
    #[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
    // Ranges of libraries are not known there either, so nobody would ask.
    return 0;
}

/// What the kernel calls this thread.
#[cfg(target_os = "linux")]
pub(super) fn thread_id() -> u64 {
    // SAFETY: (SAFETY.md 11) no arguments, never fails, async-signal-safe.
    unsafe { libc::gettid() as u64 }
}

/// Unique among the live threads, which is all that is asked.
#[cfg(not(target_os = "linux"))]
pub(super) fn thread_id() -> u64 {
    // SAFETY: (SAFETY.md 11) no arguments, never fails, async-signal-safe.
    unsafe { libc::pthread_self() as u64 }
}

/// A signal stack for the current thread, so that a stack overflow on it is still reported.
pub(super) struct Stack {
    memory: MmapMut,
}

/// Room for the context of wide registers and the handler.
const STACK: usize = 64 * 1024;

impl Stack {
    /// None: the thread has one, or there is no memory for it.
    pub(super) fn install() -> Option<Self> {
        // SAFETY: (SAFETY.md 11) a zeroed stack_t is valid; asking changes nothing.
        let present = unsafe {
            let mut present: libc::stack_t = std::mem::zeroed();
            libc::sigaltstack(std::ptr::null(), &raw mut present) == 0
                && present.ss_flags & libc::SS_DISABLE == 0
        };
        if present {
            return None;
        }
        let mut memory = MmapMut::map_anon(STACK).ok()?;
        let stack =
            libc::stack_t { ss_sp: memory.as_mut_ptr().cast::<c_void>(), ss_flags: 0, ss_size: STACK };
        // SAFETY: (SAFETY.md 11) the memory is ours until `drop` has taken the stack away again.
        let done = unsafe { libc::sigaltstack(&raw const stack, std::ptr::null_mut()) };
        (done == 0).then_some(Self { memory })
    }
}

impl Drop for Stack {
    fn drop(&mut self) {
        let off = libc::stack_t {
            ss_sp: self.memory.as_mut_ptr().cast::<c_void>(),
            ss_flags: libc::SS_DISABLE,
            ss_size: STACK,
        };
        // SAFETY: (SAFETY.md 11) on the thread that installed it, before its memory goes.
        unsafe { libc::sigaltstack(&raw const off, std::ptr::null_mut()) };
    }
}

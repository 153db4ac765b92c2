//! What a compaction costs beside the planner's own time, on a region of 100,000 lines (8 MB).
//!
//! ```text
//! cargo bench -p atomic-tests --bench compaction
//! ```
//!
//! Goal (two cores): `whole` 100 ms. It is everything that happens between the decision and the
//! next request: the region is read from the session, numbered for the planner, its 20,000 ranges
//! are read and worked off, the boundary is appended, the next context is built. `prepare`,
//! `question` and `work_off` are parts of it.

#![allow(clippy::unwrap_used, clippy::expect_used)]

use atomic_agent::{
    compact::{CompactOptions, CompactionSettings, planner, prepare, ranges},
    message::Message,
    session::Session,
};
use divan::{Bencher, black_box};
use serde_json::{Map, Value, json};
use std::path::Path;

const MESSAGES: usize = 2_000;
const LINES: usize = 50;

fn main() {
    divan::main();
}

fn session() -> Session {
    let mut session = Session::in_memory(Path::new("/"), Path::new("/"));
    for n in 0..MESSAGES {
        let line =
            |l: usize| format!("{n:>6} {l:>3} the quick brown fox jumps over the lazy dog, and so on and on");
        let text = (1..LINES).map(line).collect::<Vec<_>>().join("\n");
        let message = match n % 2 {
            0 => json!({"role": "user", "content": text}),
            _ => {
                json!({"role": "assistant", "content": [{"type": "text", "text": text}], "stopReason": "stop"})
            }
        };
        session.append_message(&serde_json::from_value::<Message>(message).unwrap(), false).unwrap();
    }
    session
}

fn prepared(session: &Session) -> prepare::Preparation {
    let settings = CompactionSettings::default();
    let parameters = settings.parameters(&CompactOptions::default(), None, Some("the fox"));
    let prepared = prepare::prepare(session, parameters, settings).unwrap();
    assert!(prepared.region.lines.len() > 99_000, "{}", prepared.region.lines.len());
    prepared
}

fn question(of: &prepare::Preparation) -> String {
    let region = &of.region;
    let protected = &region.protected_line_numbers;
    let keep = planner::keep_target(region.lines.len(), 0.5, protected.len());
    planner::Question { lines: &region.lines, first: 1, protected, keep, query: "the fox" }.text()
}

/// Half of the lines, in runs of a few.
fn answer(lines: usize) -> String {
    (0..lines / 5).map(|n| format!("{},{}\n", n * 5 + 1, n * 5 + 2)).collect()
}

fn work_off(of: &prepare::Preparation, answer: &str) -> ranges::Reconstructed {
    let region = &of.region;
    let records = planner::read(answer, None).unwrap();
    let deleted = ranges::usable(&records, region.lines.len(), &region.protected_line_numbers);
    ranges::reconstruct(&region.lines, &deleted, &region.prior_marker_ns, &region.protected_line_numbers)
}

#[divan::bench(sample_count = 20)]
fn prepare_region(bencher: Bencher<'_, '_>) {
    let session = session();
    bencher.bench_local(|| black_box(prepared(&session)));
}

#[divan::bench(sample_count = 20)]
fn number_for_the_planner(bencher: Bencher<'_, '_>) {
    let prepared = prepared(&session());
    bencher.bench_local(|| black_box(question(&prepared)));
}

#[divan::bench(sample_count = 20)]
fn work_off_ranges(bencher: Bencher<'_, '_>) {
    let prepared = prepared(&session());
    let answer = answer(prepared.region.lines.len());
    bencher.bench_local(|| black_box(work_off(&prepared, &answer)));
}

#[divan::bench(sample_count = 20)]
fn whole(bencher: Bencher<'_, '_>) {
    let session = session();
    let answer = answer(99_000);
    bencher.with_inputs(|| session.throw_away()).bench_local_refs(|session| {
        let of = prepared(session);
        black_box(question(&of));
        let done = work_off(&of, &answer);
        let mut fields = Map::new();
        fields.insert("summary".into(), done.text.into());
        fields.insert(
            "firstKeptEntryId".into(),
            of.first_kept_entry_id.clone().map_or(Value::Null, Value::from),
        );
        fields.insert("details".into(), json!({"strategy": "verbatim-lines"}));
        session.append("compaction", fields).unwrap();
        black_box(session.messages())
    });
}

//! What comes before the event parser: whole lines only, no byte-order mark, no event without
//! an end. The parser looks at all it holds again with each piece it is given, so that an event
//! in many pieces would cost the square of its length. Knows nothing of what events mean.

use futures_util::{Stream, StreamExt as _, stream};

/// Bytes of one event, and so of one line.
pub(crate) const LONGEST: usize = 64 * 1024 * 1024;

const MARK: [u8; 3] = [0xef, 0xbb, 0xbf];

#[derive(Debug, thiserror::Error)]
pub(crate) enum Broken<E> {
    #[error(transparent)]
    Connection(E),
    #[error("one event is longer than {} MiB", LONGEST / 1024 / 1024)]
    TooLong,
}

/// The same bytes in pieces that end where a line ends. Lets other tasks run between them, so
/// that a cancellation is heard however fast they come.
pub(crate) fn whole_lines<E: Send>(
    bytes: impl Stream<Item = Result<Vec<u8>, E>> + Send,
    longest: usize,
) -> impl Stream<Item = Result<Vec<u8>, Broken<E>>> + Send {
    let mut lines = Lines { held: Vec::new(), begun: false, line: 0, event: 0, after_return: false };
    let bytes = bytes.then(|chunk| async move {
        tokio::task::coop::consume_budget().await;
        Some(chunk)
    });
    // The end is one more item: it lets out what was held back.
    bytes.chain(stream::iter([None])).filter_map(move |chunk| {
        let out = match chunk {
            Some(Err(error)) => Some(Err(Broken::Connection(error))),
            Some(Ok(chunk)) => lines.take(chunk, longest).transpose(),
            None => Some(std::mem::take(&mut lines.held)).filter(|rest| !rest.is_empty()).map(Ok),
        };
        std::future::ready(out)
    })
}

struct Lines {
    /// The line that has no end yet; at the beginning also what may be a mark.
    held: Vec<u8>,
    begun: bool,
    /// Bytes of the line, and of the event, that are going on.
    line: usize,
    event: usize,
    after_return: bool,
}

impl Lines {
    /// What is whole by now, if anything is.
    fn take<E>(&mut self, chunk: Vec<u8>, longest: usize) -> Result<Option<Vec<u8>>, Broken<E>> {
        let mut end = None;
        for (at, byte) in chunk.iter().enumerate() {
            match byte {
                b'\n' if self.after_return => end = Some(at + 1),
                b'\n' | b'\r' => {
                    end = Some(at + 1);
                    if self.line == 0 {
                        self.event = 0;
                    }
                    self.line = 0;
                }
                _ => {
                    self.line += 1;
                    self.event += 1;
                }
            }
            self.after_return = *byte == b'\r';
            if self.event > longest {
                return Err(Broken::TooLong);
            }
        }
        let Some(end) = end else {
            self.held.extend(chunk);
            return Ok(None);
        };
        let mut whole = std::mem::take(&mut self.held);
        whole.extend(&chunk[..end]);
        self.held.extend(&chunk[end..]);
        if !std::mem::replace(&mut self.begun, true) {
            // The parser slices one in the middle of a character.
            while whole.starts_with(&MARK) {
                whole.drain(..MARK.len());
            }
        }
        Ok(Some(whole))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pieces(chunks: &[&[u8]], longest: usize) -> Vec<Result<Vec<u8>, String>> {
        let chunks: Vec<_> = chunks.iter().map(|c| Ok::<_, std::io::Error>(c.to_vec())).collect();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(async {
            let lines = whole_lines(stream::iter(chunks), longest);
            lines.map(|piece| piece.map_err(|e| e.to_string())).collect().await
        })
    }

    #[test]
    fn the_parser_sees_a_line_only_once_it_is_whole() {
        let got = pieces(&[b"\xef\xbb", b"\xbfdata: a", b"b", b"c\n\ndata", b": d\r", b"\n\r\nrest"], 100);
        let want: [&[u8]; 4] = [b"data: abc\n\n", b"data: d\r", b"\n\r\n", b"rest"];
        assert_eq!(got, want.map(|w| Ok(w.to_vec())));
    }

    #[test]
    fn an_event_over_the_limit_is_an_error_in_however_many_lines_it_comes() {
        let long = |chunks: &[&[u8]]| {
            pieces(chunks, 8).into_iter().any(|p| p.is_err_and(|e| e.contains("longer than")))
        };
        assert!(long(&[b"data:", b"6789"]));
        assert!(long(&[b"d:456\nd:89\n"]));
        assert!(long(&[b"d:456\r\nd:89\r\n"]));
        assert!(!long(&[b"d:45\n\nd:89\n\n"]));
        assert!(!long(&[b"d:45\r\n\r\nd:89\r\n\r\n"]));
    }
}

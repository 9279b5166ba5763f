//! The entry for fuzzing the readers of captures.

use super::{CaptureReader, Frame};
use crate::PortError;
use std::io::{Cursor, Read};

/// A stream that returns its content in pieces of changing length, as a pipe does.
struct Pieces {
    content: Cursor<Vec<u8>>,
    next_bytes: usize,
}

impl Read for Pieces {
    fn read(&mut self, out: &mut [u8]) -> std::io::Result<usize> {
        self.next_bytes = self.next_bytes * 5 % 31 + 1;
        let most = out.len().min(self.next_bytes);
        self.content.read(&mut out[..most])
    }
}

/// The content of a capture: each frame's timestamp, original length, link type and bytes; and the message of
/// the error at its end.
type Content = (Vec<(u64, u32, u32, Vec<u8>)>, Option<String>);

fn owned(frame: &Frame<'_>) -> (u64, u32, u32, Vec<u8>) {
    (frame.timestamp_ns, frame.original_bytes, frame.link_type, frame.bytes.to_vec())
}

/// The message of an error, whose offset must be in the file.
fn message(error: &PortError, file_bytes: usize) -> String {
    if let PortError::DamagedCapture { offset, .. } = error {
        assert!(*offset <= file_bytes as u64, "damage at {offset} of a file of {file_bytes} bytes");
    }
    error.to_string()
}

/// Reads a capture to its end. With `twice`, every frame is returned to the reader once.
fn content(reader: Result<CaptureReader, PortError>, file_bytes: usize, twice: bool) -> Content {
    let mut frames = vec![];
    let mut reader = match reader {
        Ok(reader) => reader,
        Err(error) => return (frames, Some(message(&error, file_bytes))),
    };
    let error = loop {
        match reader.next_frame() {
            Ok(Some(frame)) => frames.push(owned(&frame)),
            Ok(None) => break None,
            Err(error) => break Some(message(&error, file_bytes)),
        }
        if twice {
            reader.unread();
            assert_eq!(reader.whole_frames(), frames.len() as u64 - 1);
            let again = reader.next_frame().expect("it was there").map(|frame| owned(&frame));
            assert_eq!(again.as_ref(), frames.last(), "a frame that was given back");
        }
        assert_eq!(reader.whole_frames(), frames.len() as u64);
    };
    assert!(matches!(reader.next_frame(), Ok(None)), "a capture goes on behind its end");
    (frames, error)
}

/// Reads arbitrary bytes as a capture.
///
/// # Panics
/// When an invariant of this module is violated: frames are not consecutive in the file, an error's offset is
/// outside the file, or the content differs when the file is read in pieces or frames are read twice. Any
/// other panic is a defect, too.
pub fn fuzz_reader(data: &[u8]) {
    let whole = CaptureReader::from_stream("fuzz", Cursor::new(data.to_vec()));
    let (frames, error) = content(whole, data.len(), false);
    let pieces = Pieces { content: Cursor::new(data.to_vec()), next_bytes: data.len() };
    let in_pieces = content(CaptureReader::from_stream("fuzz", pieces), data.len(), true);
    assert_eq!(in_pieces, (frames.clone(), error), "whole (right) against in pieces (left)");
    let mut rest = data;
    for (_, _, _, bytes) in frames {
        // The earliest position that is left. If the frames are consecutive in the file, this finds them.
        let at =
            if bytes.is_empty() { Some(0) } else { rest.windows(bytes.len()).position(|part| part == bytes) };
        let at = at.unwrap_or_else(|| panic!("a frame of {} bytes is not in the file", bytes.len()));
        rest = &rest[at + bytes.len()..];
    }
}

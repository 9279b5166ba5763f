//! Digests: their notation, and their computation while reading.

use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// The hexadecimal notation of a digest.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A reader that computes the digest of the bytes that it reads.
pub struct Digested<R> {
    pub inner: R,
    pub digest: Sha256,
}

impl<R: Read> Read for Digested<R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let count = self.inner.read(bytes)?;
        self.digest.update(&bytes[..count]);
        Ok(count)
    }
}

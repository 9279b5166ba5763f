//! Digests: how they are written, and how one is taken of what is read.

use sha2::{Digest, Sha256};
use std::io::{self, Read};

/// A digest in hexadecimal.
pub fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A reader that takes the digest of what is read.
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

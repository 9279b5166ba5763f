//! The Toeplitz hash of receive-side scaling.

/// The key whose hash is equal for both directions, with 40 bytes as for most NICs. Longer keys repeat it.
pub const SYMMETRIC_KEY: [u8; 40] = {
    let mut key = [0; 40];
    let mut at = 0;
    while at < 40 {
        key[at] = if at % 2 == 0 { 0x6d } else { 0x5a };
        at += 1;
    }
    key
};

/// The Toeplitz hash of `input`, bit by bit as the RSS specification defines it: the reference for
/// [`crate::FlowKey::rss_hash`] and for NICs. Zeros follow the key.
pub fn toeplitz(key: &[u8], input: &[u8]) -> u32 {
    let key_byte = |at: usize| u32::from(key.get(at).copied().unwrap_or(0));
    let mut window = (0..4).fold(0, |window, at| window << 8 | key_byte(at));
    let mut hash = 0;
    for (at, byte) in input.iter().enumerate() {
        let next = key_byte(at + 4);
        for bit in (0..8).rev() {
            if byte >> bit & 1 != 0 {
                hash ^= window;
            }
            window = window << 1 | next >> bit & 1;
        }
    }
    hash
}

/// The hash with [`SYMMETRIC_KEY`] of an input whose 16-bit words have the XOR `word`.
///
/// The key repeats every 16 bits, so it is the same for every word of the input. The hash is linear, so it is
/// that of the XOR of all words. Its two halves are equal for the same reason.
#[inline]
pub fn symmetric(word: u16) -> u32 {
    let half = HIGH[usize::from(word >> 8)] ^ LOW[usize::from(word & 0xff)];
    u32::from(half) << 16 | u32::from(half)
}

/// Hash halves of the words `index << 8` and `index`.
const HIGH: [u16; 256] = table(8);
const LOW: [u16; 256] = table(0);

const fn table(shift: u32) -> [u16; 256] {
    let mut halves = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        let word = (byte as u16) << shift;
        let mut bit = 0;
        while bit < 16 {
            if word << bit & 0x8000 != 0 {
                halves[byte] ^= 0x6d5au16.rotate_left(bit);
            }
            bit += 1;
        }
        byte += 1;
    }
    halves
}

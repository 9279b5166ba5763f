//! The packet to explain, as a port would receive it.

use crate::exit::{Mistake, refuse};
use port::capture::CaptureReader;
use shm::Packet;
use shm::descriptor::{BUF_BYTES, HEADROOM};
use std::path::PathBuf;

/// A packet of a capture: the file, and the packet's number, from 1.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Which {
    pub file: PathBuf,
    pub number: u64,
}

/// Parses `FILE` or `FILE:N`; the number of `FILE` alone is 1.
pub fn which(text: &str) -> Result<Which, String> {
    let Some((file, number)) = text.rsplit_once(':').filter(|_| !std::path::Path::new(text).exists()) else {
        return Ok(Which { file: text.into(), number: 1 });
    };
    match number.parse() {
        Ok(number) if number > 0 => Ok(Which { file: file.into(), number }),
        _ => Err(format!("`{number}` is no packet's number: they count from 1, as in `{file}:1`")),
    }
}

/// A packet and its buffer.
#[derive(Clone)]
pub struct Held {
    pub packet: Packet,
    pub buffer: Vec<u8>,
}

impl Held {
    /// The packet's bytes.
    pub fn bytes(&self) -> &[u8] {
        let start = usize::from(self.packet.data());
        self.buffer.get(start..start + self.packet.len() as usize).unwrap_or_default()
    }
}

/// Reads the packet from its capture.
///
/// # Errors
/// When the capture cannot be read, it has no such packet, or the packet is too long for one buffer.
pub fn read(which: &Which) -> anyhow::Result<Held> {
    let mut reader = CaptureReader::open(&which.file)?;
    let mut number = 0;
    while let Some(frame) = reader.next_frame()? {
        number += 1;
        if number < which.number {
            continue;
        }
        let len = frame.bytes.len();
        let mut buffer = vec![0; BUF_BYTES];
        buffer
            .get_mut(HEADROOM..HEADROOM + len)
            .ok_or_else(|| {
                let most = BUF_BYTES - HEADROOM;
                let text =
                    format!("packet {number} has {len} bytes; only packets of up to {most} are explained");
                Mistake::new(text)
            })?
            .copy_from_slice(frame.bytes);
        let data = HEADROOM as u16;
        // Its length is within the buffer: its bytes were copied there.
        let mut packet = Packet::detached(data, len as u32).unwrap_or(Packet::EMPTY);
        packet.mac = data;
        frame.describe(&mut packet);
        return Ok(Held { packet, buffer });
    }
    let count = crate::text::count(number);
    refuse!("{} has {count} packets, and no packet {}", which.file.display(), which.number)
}

//! The contents of sources' packets.

use click::config::{Args, parse};
use element::Work;
use element::value::written;
use packet::Access;
use shm::Packet;
use shm::burst::Vector;
use shm::bytes::PacketBytesMut;
use shm::chain::SEGMENT_BYTES;
use shm::pool::Pool;

/// The default of Click's sources. Existing configurations rely on its length.
const DEFAULT: &str = "Random bullshit in a packet, at least 64 bytes long. Well, now it is.";
/// The longest packet.
const MOST_BYTES: i64 = 65_535;

/// The data of a source's packets.
pub(super) struct Data {
    text: Vec<u8>,
    /// `None` for the length of the text.
    length: Option<usize>,
    /// The bytes of a packet: the text, cut or repeated.
    frame: Vec<u8>,
}

impl Data {
    /// With the given text and length.
    pub(super) fn new(text: Option<Vec<u8>>, length: Option<usize>) -> Data {
        let mut data = Data { text: text.unwrap_or_else(|| DEFAULT.into()), length, frame: vec![] };
        data.fill();
        data
    }

    /// Reads `LENGTH`, or its old name `DATASIZE`; -1 stands for the length of the text.
    pub(super) fn read_length(args: &mut Args<'_>) -> Option<usize> {
        let length = args.keyword("LENGTH", parse::int_in(-1..=MOST_BYTES));
        let old = args.keyword("DATASIZE", parse::int_in(-1..=MOST_BYTES));
        length.or(old).and_then(|length| usize::try_from(length).ok())
    }

    fn fill(&mut self) {
        let length = self.length.unwrap_or(self.text.len()).min(MOST_BYTES as usize);
        self.frame = self.text.iter().copied().cycle().take(length).collect();
        // An empty text cannot be repeated.
        self.frame.resize(length, 0);
    }

    /// The text.
    pub(super) fn text(&self) -> String {
        String::from_utf8_lossy(&self.text).into_owned()
    }

    /// Sets the text. The handler takes it raw, as Click's does.
    pub(super) fn set_text(&mut self, value: &str) {
        self.text = value.as_bytes().to_vec();
        self.fill();
    }

    /// The given length, or -1 for the length of the text.
    pub(super) fn length_text(&self) -> String {
        self.length.map_or_else(|| "-1".to_string(), |length| length.to_string())
    }

    /// Sets the length.
    pub(super) fn set_length(&mut self, value: &str) -> Result<(), String> {
        let length = written(value, parse::int_in(-1..=MOST_BYTES))?;
        self.length = usize::try_from(length).ok();
        self.fill();
        Ok(())
    }

    /// Bytes of a packet.
    pub(super) fn len(&self) -> usize {
        self.frame.len()
    }

    /// Puts up to `most` packets into a vector, fewer if the pool runs empty. Returns their number.
    pub(super) fn make(
        &self,
        most: usize,
        timestamp_ns: u64,
        vector: &mut Vector,
        work: &mut Work<'_>,
    ) -> usize {
        if self.frame.len() > SEGMENT_BYTES {
            return vector.push_from(most, || {
                let mut packet = work.make(&self.frame)?;
                packet.timestamp_ns = timestamp_ns;
                Some(packet)
            });
        }
        let count = vector.fill(most, |free| {
            let count = work.pool().alloc(free);
            for packet in &mut free[..count] {
                self.write(packet, timestamp_ns);
            }
            count
        });
        work.count_made(count);
        count
    }

    fn write(&self, packet: &mut Packet, timestamp_ns: u64) {
        packet.timestamp_ns = timestamp_ns;
        let fits = packet.put(self.frame.len()) && PacketBytesMut::new(packet).copy_in(0, &self.frame);
        debug_assert!(fits, "a fresh packet holds a segment");
    }
}
